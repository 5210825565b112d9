"""Ring programs compute with numbers what the interpreter computes with arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, new_context
from lego_mlir.mlir.tile_ir.interpreter.machine import Machine, Steps
from lego_mlir.mlir.tile_ir.interpreter.pointwise import POINTWISE
from lego_mlir.mlir.tile_ir.interpreter.values import dtype_of, wrapped
from lego_mlir.mlir.tile_ir.verifier.rings.natural_numbers import on_naturals
from lego_mlir.mlir.tile_ir.verifier.rings.program import Run

BITWISE = ("andi", "ori")
BINARY = (
    *BITWISE,
    *("addi", "subi", "muli", "minsi", "minui", "maxsi", "maxui"),
    *("divsi", "divui", "floordivsi", "remsi", "remui"),
)
KINDS = ("index", "i32", "i64")
NARROW_KINDS = ("i1", "i8")


def _module() -> str:
    lines = []
    for kind in KINDS:
        lines.append(f"func.func @{kind}(%a: {kind}, %b: {kind}) {{")
        lines += [f"%{name} = arith.{name} %a, %b : {kind}" for name in BINARY]
        predicates = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
        lines += [f"%{name} = arith.cmpi {name}, %a, %b : {kind}" for name in predicates]
        lines.append("return }")
    for kind in NARROW_KINDS:
        lines.append(f"func.func @{kind}(%a: {kind}, %b: {kind}) {{")
        lines += [f"%{name} = arith.{name} %a, %b : {kind}" for name in BITWISE]
        lines.append("return }")
    return "\n".join(lines)


MODULE = ir.Module.parse(_module(), new_context())
OPERATIONS = [
    op.operation
    for function in MODULE.body.operations
    for op in function.regions[0].blocks[0].operations
    if op.operation.name != "func.return"
]
MACHINE = Machine(None, None, {}, True, {}, Steps())  # type: ignore[arg-type]

NUMBERS = st.one_of(
    st.integers(-3, 9), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(2**31 - 3, 2**31 + 3)
)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, NUMBERS)
def test_small_numbers_are_computed_as_the_interpreter_does(a: int, b: int) -> None:
    for op in OPERATIONS:
        dtype = dtype_of(op.operands[0].type)
        operands = [wrapped(x, dtype) for x in (a, b)]
        places = {op.operands[0]: 0, op.operands[1]: 1, op.results[0]: 2}
        numbers = [*(x.item() for x in operands), None]
        otherwise: list[int] = []
        execute = on_naturals(op, places.__getitem__, lambda _, calls=otherwise: calls.append(1))
        assert execute is not None
        execute(Run(MACHINE, numbers, 0, []))
        if otherwise:  # what is small stays with the fast way
            assert numbers[0] > 9 or numbers[1] > 9 or min(*numbers[:2], _result(op, operands)) <= 0
        else:
            assert numbers[2] == _result(op, operands)


def _result(op: object, operands: list[np.ndarray]) -> int:  # type: ignore[type-arg]
    with np.errstate(all="ignore"):
        return int(POINTWISE[op.name](op, *operands))  # type: ignore[attr-defined]


# What a program keeps: numbers that loops carry, branches choose and other widths wrap around.
TILE = "tensor<64x64xf16, #S>"
RING = f"!lego.ring<2 : i64, {TILE}>"
ROWS = "OrderBy(Row(4, 32, 32)).OrderBy(RegP([4, 4, 4, 8, 8], [1, 2, 3, 0, 4])).GroupBy([64, 64])"
KERNEL = f"""
#A = #lego.layout<"OrderBy(Row(256, 64))">
#S = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#D = #lego.layout<"{ROWS}">
func.func @main(%a: memref<16384xf16> {{lego.layout = #A, lego.alignment = 16 : i64}},
                %c: memref<16384xf16> {{lego.layout = #A, lego.alignment = 16 : i64}}) {{
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {{
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 4 : index
    %r = "lego.make_ring"() : () -> {RING}
    AHEAD
    scf.for %i = %c0 to %n step %one {{
      %ahead = arith.addi %i, %first : index
      %more = arith.cmpi slt, %ahead, %n : index
      scf.if %more {{
        "lego.acquire"(%r, %ahead) : ({RING}, index) -> ()
        "lego.copy_async"(%r, %ahead, %a, %c0, %c0) {{layout = #A, slice = array<i64: 0, 1>,
          engine = "cp.async"}} : ({RING}, index, memref<16384xf16>, index, index) -> ()
        "lego.commit"(%r, %ahead) : ({RING}, index) -> ()
      }}
      %t = "lego.wait"(%r, %i) : ({RING}, index) -> {TILE}
      %x = "lego.convert"(%t) : ({TILE}) -> tensor<64x64xf16, #D>
      "lego.release"(%r, %i) : ({RING}, index) -> ()
      "lego.store"(%x, %c, %c0, %c0) {{layout = #A, slice = array<i64: 0, 1>}}
        : (tensor<64x64xf16, #D>, memref<16384xf16>, index, index) -> ()
    }}
    gpu.terminator
  }}
  return
}}
"""
AHEAD = f"""
    %first = arith.constant N : index
    scf.for %i = %c0 to %first step %one {{
        "lego.acquire"(%r, %i) : ({RING}, index) -> ()
        "lego.copy_async"(%r, %i, %a, %c0, %c0) {{layout = #A, slice = array<i64: 0, 1>,
          engine = "cp.async"}} : ({RING}, index, memref<16384xf16>, index, index) -> ()
        "lego.commit"(%r, %i) : ({RING}, index) -> ()
    }}
"""


def _placed(ahead: int) -> None:
    text = KERNEL.replace("AHEAD", AHEAD.replace("N", str(ahead)))
    options = Options(target=Target.parse("sm_90a"))
    _ = Compilation(Source("kernel.mlir", text), options).placed


def test_a_ring_that_is_filled_too_far_ahead_is_a_deadlock() -> None:
    _placed(1)
    with pytest.raises(LegoError, match="'the kernel' waits for the release of tile 0") as caught:
        _placed(2)
    assert caught.value.location is not None
