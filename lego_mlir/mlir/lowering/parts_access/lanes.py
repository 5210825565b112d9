"""Values in other groups: the elements of some vectors as vectors of other widths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit.operations import make, vector_element, vector_slice

Lane: TypeAlias = tuple[Any, int]
"""An element: the value that it is in, a vector or a single element, and its position."""


def lanes_in(kind: Any) -> int:
    """Return the number of elements of a part."""
    return int(ir.VectorType(kind).shape[0]) if isinstance(kind, ir.VectorType) else 1


def lanes_of(values: Sequence[Any]) -> list[Lane]:
    """Return the elements of values, in order."""
    return [(value, k) for value in values for k in range(lanes_in(value.type))]


def source_of(lane: Lane) -> Lane:
    """Return where an element was before it was put into vectors, or taken out of them."""
    value, position = lane
    while not isinstance(value, ir.BlockArgument):
        op = value.owner
        match op.name:
            case "vector.from_elements":
                value, position = op.operands[position], 0
            case "vector.broadcast" if not isinstance(op.operands[0].type, ir.VectorType):
                value, position = op.operands[0], 0
            case "vector.extract" if len(list(op.operands)) == 1:
                at = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
                if len(at) != 1 or ir.VectorType(op.operands[0].type).rank != 1:
                    break
                value, position = op.operands[0], at[0]
            case "vector.to_elements":
                value, position = op.operands[0], ir.OpResult(value).result_number
            case _:
                break
    return value, position


def element(lane: Lane) -> Any:
    """Build an element as a value of its own; one that was put into a vector is known."""
    value, position = source_of(lane)
    if not isinstance(value.type, ir.VectorType):
        return value
    return vector_element(value, position)


def grouped(lanes: Sequence[Lane], kinds: Sequence[Any]) -> list[Any]:
    """Build values of some types, vectors or elements, that hold the elements in order."""
    left = iter(lanes)
    return [_joined([next(left) for _ in range(lanes_in(kind))], kind) for kind in kinds]


def _joined(lanes: Sequence[Lane], kind: Any) -> Any:
    """Build one value of elements: as it is, a part of one vector, or from single elements."""
    value, first = lanes[0]
    if not isinstance(kind, ir.VectorType):
        return element(lanes[0])
    if all(lane == (value, first + k) for k, lane in enumerate(lanes)):
        if value.type == kind:
            return value
        return vector_slice(kind, value, first)
    return make("vector.from_elements", kind, *map(element, lanes))


def with_elements(kind: Any, element_type: Any) -> Any:
    """Return the type of a part with elements of another type."""
    if not isinstance(kind, ir.VectorType):
        return element_type
    return ir.VectorType.get(list(ir.VectorType(kind).shape), element_type)


def bytes_to_bits(value: Any) -> Any:
    """Build the truth of bytes, 0 or 1, as i1."""
    return arith.TruncIOp(with_elements(value.type, ir.IntegerType.get_signless(1)), value).result


def bits_to_bytes(value: Any) -> Any:
    """Build truth as bytes, 0 or 1."""
    return arith.ExtUIOp(with_elements(value.type, ir.IntegerType.get_signless(8)), value).result
