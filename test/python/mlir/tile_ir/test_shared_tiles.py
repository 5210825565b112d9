"""Tiles in shared memory, and the types of operations on pipelines, in the verifier."""

from __future__ import annotations

import pytest

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

HEAD = """
#A = #lego.layout<"OrderBy(Row(64, 64))">
#S = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#T = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2))).OrderBy(Col(64, 64))">
func.func @main(%a: memref<4096xf16> {lego.layout = #A, lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %x = "lego.load"(%a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>}
      : (memref<4096xf16>, index, index) -> tensor<64x64xf16>
"""
TAIL = """
    "lego.store"(%x, %a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>}
      : (tensor<64x64xf16>, memref<4096xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}
"""
TILE = "tensor<64x64xf16, #S>"
RING = f"!lego.ring<2 : i64, {TILE}>"
MAKE = f'%r = "lego.make_ring"() : () -> {RING}\n'
CONVERT = f'%s = "lego.convert"(%x) : (tensor<64x64xf16>) -> {TILE}\n'
ROLE = '"lego.role"() ({ gpu.yield }) {name = "all", '


def _converted(layout: str) -> str:
    kind = f'tensor<64x64xf16, #lego.shared<"{layout}">>'
    return f'%s = "lego.convert"(%x) : (tensor<64x64xf16>) -> {kind}'


def _copied(engine: str, origin: str) -> str:
    indices = ", index" * (1 + origin.count(","))
    return (
        f'{MAKE} "lego.copy_async"(%r, %c0, %a, {origin}) {{layout = #A, engine = "{engine}", '
        f"slice = array<i64: 0, 1>}} : ({RING}, index, memref<4096xf16>{indices}) -> ()"
    )


CASES = {
    "'OrderBy(Row(64, 32))' of [64, 32]": _converted("OrderBy(Row(64, 32))"),
    "the layout of a tile in shared memory": _converted("nonsense"),
    "in shared memory has the layout 'OrderBy(Row(M, 64))'": _converted("OrderBy(Row(M, 64))"),
    "'arith.negf' of a tile in shared memory": f"{CONVERT} %y = arith.negf %s : {TILE}",
    "from shared memory to shared memory": (
        f'{CONVERT} %y = "lego.convert"(%s) : ({TILE}) -> tensor<64x64xf16, #T>'
    ),
    "'lego.transpose' to the layout": (
        f'{CONVERT} %y = "lego.transpose"(%s) {{order = array<i64: 1, 0>}} : ({TILE}) -> {TILE}'
    ),
    "'lego.make_ring' of tensor<64x64xf16>": (
        '%r = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x64xf16>>'
    ),
    "'lego.make_ring' of 0 stages": (
        f'%r = "lego.make_ring"() : () -> !lego.ring<0 : i64, {TILE}>'
    ),
    "'lego.copy_async' by 'dma'": _copied("dma", "%c0, %c0"),
    "'lego.copy_async' has 1 indices": _copied("tma", "%c0"),
    "'lego.wait' has the tile": (
        f'{MAKE} %t = "lego.wait"(%r, %c0) : ({RING}, index) -> tensor<64x64xf16, #T>'
    ),
    "'lego.role' of 20 registers": (
        f"{ROLE} first_warp = 0 : i64, warps = 4 : i64, registers = 20 : i64}} : () -> ()"
    ),
    "'lego.role' of the warps 1 to 3 sets their registers": (
        f"{ROLE} first_warp = 1 : i64, warps = 3 : i64, registers = 24 : i64}} : () -> ()"
    ),
    "'lego.turn_begin' of 1 warpgroups": '"lego.turn_begin"() {groups = 1 : i64} : () -> ()',
}


@pytest.mark.parametrize("said", CASES)
def test_wrong_types_are_refused(said: str) -> None:
    source = Source("kernel.mlir", HEAD + CASES[said] + TAIL)
    with pytest.raises(LegoError) as caught:
        _ = Compilation(source, Options(target=Target.parse("sm_90a"))).placed
    assert said in caught.value.message
