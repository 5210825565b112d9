"""Elements of a mask that are constants or are known to be equal, by what computes them.

A mask often is a comparison of indices with a limit. Its elements are read as such, so that those
of one vector access are known to be equal where the limit cannot lie between them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.index import Int, Sym, bounds, construct
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.parts_access.conditions import representative, split
from lego_mlir.mlir.lowering.parts_access.lanes import Lane, lanes_of, source_of

_LOGIC = ("arith.andi", "arith.ori", "arith.xori")
_SUMS: dict[str, Callable[[Int, Int], Int]] = {
    "arith.addi": construct.add,
    "arith.subi": construct.sub,
    "arith.muli": construct.mul,
}
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi")
_EQ, _NE, _SLT, _SLE, _SGT, _SGE, _ULT, _ULE, _UGT, _UGE = range(10)
"""The predicates of arith.cmpi."""


@dataclass(frozen=True)
class MaskElement:
    """One element of a mask.

    Attributes:
        key: elements with the same key are equal; `True` and `False` are constants.
        lane: where it is.
    """

    key: Hashable
    lane: Lane


def elements(parts: Sequence[Any], read: Callable[[Any], Int]) -> list[MaskElement]:
    """Return the elements of the parts of a mask, in order.

    Args:
        parts: values of i1, or vectors of it.
        read: returns the expression of a value of type index.
    """
    keys = _Keys(read)
    return [MaskElement(keys.of(*lane), lane) for lane in lanes_of(parts)]


class _Keys:
    """What elements are known by."""

    def __init__(self, read: Callable[[Any], Int]) -> None:
        self._read = read
        self._found: dict[Lane, Hashable] = {}
        self._symbols: dict[Lane, Sym] = {}

    def of(self, value: Any, position: int) -> Hashable:
        """Return the key of a truth value."""
        lane = source_of((value, position))
        if lane not in self._found:
            self._found[lane] = self._key(*lane)
        return self._found[lane]

    def _key(self, value: Any, position: int) -> Hashable:
        if isinstance(value, ir.BlockArgument):
            return value, position
        op = value.owner
        if op.name == "arith.constant":
            return bool(_constant(op, position))
        if op.name in _LOGIC:
            return op.name, *(self.of(operand, position) for operand in op.operands)
        if op.name == "arith.cmpi":
            a, b = (self._integer(operand, position) for operand in op.operands)
            found = _comparison(ir.IntegerAttr(op.attributes["predicate"]).value, a, b)
            if found is not None:
                return found
        return value, position

    def _integer(self, value: Any, position: int) -> Int:
        """Return an element that is an integer as an expression; what is not read is a symbol."""
        lane = value, position = source_of((value, position))
        if not isinstance(value, ir.BlockArgument):
            op = value.owner
            if op.name == "arith.constant":
                return int(_constant(op, position))
            if isinstance(value.type, ir.IndexType):
                return self._read(value)
            x = None
            if op.name in _SUMS:
                x = _SUMS[op.name](*(self._integer(y, position) for y in op.operands))
            elif op.name in _CASTS:
                x = self._integer(op.operands[0], position)
            if x is not None and _is_in_range(x, value.type):
                return x
        elif isinstance(value.type, ir.IndexType):
            return self._read(value)
        if lane not in self._symbols:
            low, high = _range(value.type)
            self._symbols[lane] = Sym(f"lane {len(self._symbols)}", low, high)
        return self._symbols[lane]


def _comparison(predicate: int, a: Int, b: Int) -> Hashable | None:
    """Return the key of a comparison of two integers, `None` if nothing is known of it."""
    if predicate in (_ULT, _ULE, _UGT, _UGE):
        if any((low := bounds(x)[0]) is None or low < 0 for x in (a, b)):
            return None
        predicate -= _ULT - _SLT
    if predicate in (_EQ, _NE):
        difference = construct.sub(a, b)
        if isinstance(difference, int):
            return (difference == 0) is (predicate == _EQ)
        return predicate, difference
    if predicate in (_SGT, _SGE):
        a, b = b, a
    difference = construct.sub(a, b)
    if predicate in (_SLE, _SGE):
        difference = construct.sub(difference, 1)
    base, constant = split(difference)  # the comparison is: difference < 0
    compared = representative(base, constant, 0)
    low, high = bounds(compared)
    if high is not None and high < 0:
        return True
    if low is not None and low >= 0:
        return False
    return _SLT, compared


def _constant(op: Any, position: int) -> Any:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return attribute[0 if attribute.is_splat else position]
    return attribute.value


def _range(kind: Any) -> tuple[int, int]:
    """Return the least and greatest number of an integer type or a vector of it."""
    element = ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind
    half = 1 << (getattr(element, "width", 64) - 1)
    return -half, half - 1


def _is_in_range(x: Int, kind: Any) -> bool:
    """Return whether an expression is proven not to leave the numbers of a type."""
    (low, high), (least, most) = bounds(x), _range(kind)
    return low is not None and high is not None and least <= low and high <= most
