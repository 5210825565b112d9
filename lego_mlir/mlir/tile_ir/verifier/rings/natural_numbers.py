"""Operations of arith on small natural numbers, on which signed and unsigned ones agree.

What they make of other numbers, such as what wraps around, is up to the interpreter.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lego_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_ir.verifier.rings.program import Run

_END = 1 << 31
"""Small numbers are below; integers of 32 bits and more have them with and without a sign."""

_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
}
_BITWISE: Mapping[str, Callable[[int, int], int]] = {
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
}
"""Of integers of any width: what is no sign stays none."""

_DIVISIONS: Mapping[str, Callable[[int, int], int]] = {
    "arith.divsi": operator.floordiv,
    "arith.divui": operator.floordiv,
    "arith.floordivsi": operator.floordiv,
    "arith.remsi": operator.mod,
    "arith.remui": operator.mod,
}
_PREDICATES: tuple[Callable[[int, int], bool], ...] = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.lt, operator.le, operator.gt, operator.ge),
)
"""In the order of arith.cmpi's numbers: signed ones, then unsigned ones."""


def on_naturals(
    op: Any, place: Callable[[Any], int], otherwise: Callable[[Run], None]
) -> Callable[[Run], None] | None:
    """Return what executes an operation of two operands, `None` for other operations.

    Args:
        op: the operation.
        place: returns the place of a value's number.
        otherwise: executes it where a number is not small.
    """
    least = 0
    if op.name == "arith.cmpi":
        compute: Callable[[int, int], int] = _PREDICATES[op.attributes["predicate"].value]
    elif op.name in _BITWISE:
        compute = _BITWISE[op.name]
    elif op.name in _BINARY:
        compute = _BINARY[op.name]
    elif op.name in _DIVISIONS:
        compute, least = _DIVISIONS[op.name], 1
    else:
        return None
    if op.name not in _BITWISE and not _is_wide(op.operands[0].type):
        return None
    (result,) = op.results
    to, (first, second) = place(result), map(place, op.operands)

    def execute(run: Run) -> None:
        numbers = run.numbers
        a, b = numbers[first], numbers[second]
        if 0 <= a < _END and least <= b < _END:
            found = compute(a, b)
            if 0 <= found < _END:
                numbers[to] = found
                return
        otherwise(run)

    return execute


def _is_wide(kind: Any) -> bool:
    return isinstance(kind, ir.IndexType) or kind.width >= 32  # of integers
