"""An index expression is printed once where several operations need it, and dominates its uses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source, new_context, parse
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering.lower_lego import lower_lego
from lego_mlir.mlir.modules import operations_in

LAYOUT = '{layout = #lego.layout<"OrderBy(Row(8, 8)).TileBy([4, 4], [2, 2])">}'
CALL = '"lego.apply"(%a, %b, %c, %d) {layout} : (index, index, index, index) -> index'
USE = '"test.use"(%x) : (index) -> ()'


def lowered(body: str) -> Any:
    """The module of a function of four indices, verified, not cleaned up."""
    arguments = ", ".join(f"%{name}: index" for name in "abcd")
    body = body.replace("APPLY", CALL.replace("{layout}", LAYOUT))
    source = Source("test.mlir", f"func.func @f({arguments}, %p: i1) {{\n{body}\nreturn\n}}")
    context = new_context()
    context.allow_unregistered_dialects = True
    module = parse(source, context)
    lower_lego(module, Layouts.of_module(module, source), source, Target.parse("sm_80"))
    return module


def sums(module: Any) -> int:
    """How many sums of products were printed."""
    return Counter(op.name for op in operations_in(module.operation))["affine.apply"]


def applied(name: str) -> str:
    return f"%{name} = APPLY\n" + USE.replace("%x", f"%{name}")


ONCE = sums(lowered(applied("x")))


def test_one_block_prints_once() -> None:
    assert ONCE > 0
    assert sums(lowered(applied("x") + "\n" + applied("y"))) == ONCE


def test_a_block_inside_sees_what_was_printed_before_it() -> None:
    module = lowered(applied("x") + "\nscf.if %p {\n" + applied("y") + "\n}")
    assert sums(module) == ONCE


def test_what_a_block_inside_prints_is_not_seen_behind_it() -> None:
    module = lowered("scf.if %p {\n" + applied("x") + "\n}\n" + applied("y"))
    assert sums(module) == 2 * ONCE


def test_the_other_branch_does_not_see_it() -> None:
    branches = "scf.if %p {\n" + applied("x") + "\n} else {\n" + applied("y") + "\n}"
    assert sums(lowered(branches)) == 2 * ONCE


def test_a_loop_keeps_outside_what_it_does_not_change() -> None:
    loop = "scf.for %i = %a to %b step %c {\n" + applied("x") + "\n" + applied("y") + "\n}"
    module = lowered(loop)
    assert sums(module) == ONCE
    names = [op.name for op in operations_in(module.operation)]
    assert max(k for k, name in enumerate(names) if name == "affine.apply") < names.index("scf.for")


def test_a_kernel_computes_its_own() -> None:
    kernel = """
    %one = arith.constant 1 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
               threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
    BODY
    gpu.terminator
    }"""
    module = lowered(applied("x") + kernel.replace("BODY", applied("y")))
    assert sums(module) == 2 * ONCE
