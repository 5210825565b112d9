"""Divisions of integers by what may be 0: the quotient is some number then, nothing worse.

    %q = arith.floordivsi %a, %b : i32

becomes

    %is_zero = arith.cmpi eq, %b, %c0 : i32
    %divisor = arith.select %is_zero, %c1, %b : i32
    %q = arith.floordivsi %a, %divisor : i32

LLVM takes a division by 0 for code that is never reached, and leaves out what would lead there: the
condition under which a divisor is loaded that is 0 beyond the end of a tensor, or the one of
`where(b != 0, a // b, 0)`. The instructions of a GPU do not trap (PTX ISA 9.7.1.7, div). Indices
are left as they are: layouts divide them by sizes, which are 1 at least.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import make

_DIVISIONS = frozenset(
    f"arith.{name}"
    for name in ("divsi", "divui", "floordivsi", "ceildivsi", "ceildivui", "remsi", "remui")
)
_EQUAL = 0
"""The predicate of arith.cmpi."""


def guard_divisions(operations: Iterable[Any]) -> None:
    """Let integers be divided by 1 where the divisor is 0.

    Args:
        operations: of a module, before it is lowered to the llvm dialect, which is changed in
            place; its context is the current one.
    """
    for op in operations:
        if op.name not in _DIVISIONS or not _may_be_zero(op.operands[1]):
            continue
        divisor = op.operands[1]
        with ir.InsertionPoint(op), op.location:
            zero, one = (_constant(divisor.type, number) for number in (0, 1))
            predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _EQUAL)
            truth = _like(divisor.type, ir.IntegerType.get_signless(1))
            is_zero = make("arith.cmpi", truth, divisor, zero, predicate=predicate)
            op.operands[1] = make("arith.select", divisor.type, is_zero, one, divisor)


def _may_be_zero(divisor: Any) -> bool:
    """Return whether a divisor is a number of the kernel's data that is no constant but 0."""
    kind = divisor.type
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    if not isinstance(element, ir.IntegerType):
        return False
    if isinstance(divisor, ir.BlockArgument) or divisor.owner.name != "arith.constant":
        return True
    value = divisor.owner.attributes["value"]
    numbers = [value.value] if isinstance(value, ir.IntegerAttr) else ir.DenseIntElementsAttr(value)
    return any(number == 0 for number in numbers)


def _like(kind: Any, element: Any) -> Any:
    """Return the type of elements in the shape of another type."""
    if not isinstance(kind, ir.VectorType):
        return element
    return ir.VectorType.get(list(kind.shape), element)


def _constant(kind: Any, number: int) -> Any:
    """Return a constant of a type, the same in every element."""
    if not isinstance(kind, ir.VectorType):
        return make("arith.constant", kind, value=ir.IntegerAttr.get(kind, number))
    splat = ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(kind.element_type, number))
    return make("arith.constant", kind, value=splat)
