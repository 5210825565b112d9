"""The positions of tiles in rings: those that follow from one another are those of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import new_context
from lego_mlir.mlir.tile_passes.lower_pipelines.positions import Position
from lego_mlir.mlir.tile_passes.lower_tiles import build

OPERATIONS: Mapping[str, Callable[..., int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.andi": lambda a, b: a & b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.extui": lambda a: a,
    "arith.select": lambda condition, a, b: a if condition else b,
}
PREDICATES: Mapping[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    6: lambda a, b: 0 <= a < b,
}


def value_of(value: Any) -> int:
    """Return the number that operations on constants compute."""
    op = value.owner
    if op.name == "arith.constant":
        return int(ir.IntegerAttr(op.attributes["value"]).value)
    operands = [value_of(x) for x in op.operands]
    if op.name == "arith.cmpi":
        return int(PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value](*operands))
    return OPERATIONS[op.name](*operands)


@given(st.integers(1, 9), st.integers(0, 60), st.integers(-12, 40))
def test_a_position_that_follows_from_another(stages: int, number: int, distance: int) -> None:
    def position(n: int) -> tuple[int, int]:
        return n % stages, n // stages % 2

    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            stage, parity = position(number)
            at = Position(build.index(stage), build.constant(build.i32(), parity))
            moved = at.moved(distance, stages)
            assert (value_of(moved.stage), value_of(moved.parity)) == position(number + distance)
