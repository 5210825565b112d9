"""Builders of the few operations of arith, vector and gpu that threads are made of.

They insert at the current insertion point, with the current location. Operations are built by
name: the bindings' classes for them take longer to load than a kernel to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import constant as constant
from lego_mlir.mlir.emit.operations import make as make

_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "ult": 6}


def i32() -> Any:
    """Return the type of lanes, masks and words of a shuffle."""
    return ir.IntegerType.get_signless(32)


def integers(kind: Any, numbers: Sequence[int]) -> Any:
    """Build a vector of integers of type `kind`, or the single one."""
    if not isinstance(kind, ir.VectorType):
        return constant(kind, numbers[0])
    element = ir.VectorType(kind).element_type
    listed = [ir.IntegerAttr.get(element, n) for n in numbers]
    return make("arith.constant", kind, value=ir.DenseElementsAttr.get(listed, kind))


def index(number: int) -> Any:
    """Build a number of type index."""
    return constant(ir.IndexType.get(), number)


def binary(name: str, a: Any, b: Any) -> Any:
    """Build the operation `arith.name` of two values of one type."""
    return make(f"arith.{name}", a.type, a, b)


def compare(predicate: str, a: Any, b: Any) -> Any:
    """Build a comparison of two integers or indices."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _PREDICATES[predicate])
    return make("arith.cmpi", ir.IntegerType.get_signless(1), a, b, predicate=number)


def select(condition: Any, a: Any, b: Any) -> Any:
    """Build the choice of `a` where an i1 is true, else of `b`."""
    return a if a == b else make("arith.select", a.type, condition, a, b)


def vector_type(count: int, element: Any) -> Any:
    """Return the type of so many elements: a vector, or the element type for one."""
    return ir.VectorType.get([count], element) if count > 1 else element


def count_of(value: Any) -> int:
    """Return how many elements a vector or a single element has."""
    kind = value.type
    return int(ir.VectorType(kind).shape[0]) if isinstance(kind, ir.VectorType) else 1


def element_type(value: Any) -> Any:
    """Return the element type of a vector, and of a single element its type."""
    kind = value.type
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def broadcast(kind: Any, number: Any) -> Any:
    """Build the vector of type `kind` whose elements all are `number`; itself for one element."""
    return number if kind == number.type else make("vector.broadcast", kind, number)


def to_elements(value: Any) -> list[Any]:
    """Build the elements of a vector; a single element is its own."""
    if not isinstance(value.type, ir.VectorType):
        return [value]
    kind = ir.VectorType(value.type)
    op = ir.Operation.create(
        "vector.to_elements", results=[kind.element_type] * kind.shape[0], operands=[value]
    )
    return list(op.results)


def from_elements(elements: Sequence[Any]) -> Any:
    """Build a vector of its elements; a single element is its own."""
    if len(elements) == 1:
        return elements[0]
    kind = vector_type(len(elements), elements[0].type)
    if len(set(elements)) == 1:
        return broadcast(kind, elements[0])
    return make("vector.from_elements", kind, *elements)


def with_element(kind: Any, element: Any) -> Any:
    """Return a type of vectors, or of single elements, with another element type."""
    is_vector = isinstance(kind, ir.VectorType)
    return ir.VectorType.get(list(ir.VectorType(kind).shape), element) if is_vector else element


def is_bool(value: Any) -> bool:
    """Return whether the elements of a value are i1."""
    return bool(element_type(value) == ir.IntegerType.get_signless(1))


def bool_to_byte(value: Any) -> Any:
    """Build i8, 0 or 1, of i1; another value is itself."""
    if not is_bool(value):
        return value
    byte = with_element(value.type, ir.IntegerType.get_signless(8))
    return make("arith.extui", byte, value)


def byte_to_bool(value: Any) -> Any:
    """Build i1 of i8, by its lowest bit."""
    return make("arith.trunci", with_element(value.type, ir.IntegerType.get_signless(1)), value)
