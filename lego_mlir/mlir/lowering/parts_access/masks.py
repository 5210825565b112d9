"""Elements of a mask that are constants or are known to be equal, by what computes them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.parts_access.lanes import Lane, lanes_of

_LOGIC = ("arith.andi", "arith.ori", "arith.xori")


@dataclass(frozen=True)
class MaskElement:
    """One element of a mask.

    Attributes:
        key: elements with the same key are equal; `True` and `False` are constants.
        lane: where it is.
    """

    key: Hashable
    lane: Lane


def elements(parts: Sequence[Any]) -> list[MaskElement]:
    """Return the elements of the parts of a mask, in order."""
    return [MaskElement(_key(*lane), lane) for lane in lanes_of(parts)]


def _key(part: Any, position: int) -> Hashable:
    """Return what an element is known by: a constant, or the operations that compute it."""
    if isinstance(part, ir.BlockArgument):
        return part, position
    op = part.owner
    match op.name:
        case "arith.constant":
            return _constant(op.attributes["value"], position)
        case "vector.from_elements":
            return _key(op.operands[position], 0)
        case "vector.broadcast" if not isinstance(op.operands[0].type, ir.VectorType):
            return _key(op.operands[0], 0)
        case name if name in _LOGIC:
            return name, *(_key(operand, position) for operand in op.operands)
    return part, position


def _constant(attribute: Any, position: int) -> bool:
    if isinstance(attribute, ir.DenseElementsAttr):
        return bool(
            attribute.get_splat_value().value if attribute.is_splat else attribute[position]
        )
    return bool(attribute.value)
