"""Conversions between element types."""

from __future__ import annotations

from typing import Any

from lego_mlir.frontend.trace import Trace
from lego_mlir.mlir.bindings import ir


def cast(value: Any, target: Any, trace: Trace, *, from_unsigned: bool, to_unsigned: bool) -> Any:
    """Convert an SSA value, or each element of a vector or tile, to another element type.

    Args:
        value: of a floating-point, integer, index or truth type, or a vector or tile of these.
        target: the MLIR element type.
        trace: in which the operations are recorded.
        from_unsigned: the value's integers are unsigned.
        to_unsigned: the result's are.
    """
    signs = "u" if from_unsigned else "s", "u" if to_unsigned else "s"
    for name, element in _path(element_type(value.type), target, *signs):
        (value,) = trace.create(name, [in_shape_of(value.type, element)], [value])
    return value


def _path(a: Any, b: Any, source: str, result: str) -> list[tuple[str, Any]]:
    """Return the operations that convert between two element types, and their types."""
    if a == b:
        return []
    if isinstance(a, ir.IndexType):
        # Of 64 bits, whatever a float can hold: the back end narrows what is proven to be small.
        whole = b if isinstance(b, ir.IntegerType) else ir.IntegerType.get_signless(64)
        return [("arith.index_cast", whole), *_path(whole, b, source, result)]
    if is_truth(a):
        source = "u"
    match a, b:
        case ir.FloatType(), ir.FloatType() if a.width == b.width:
            f32 = ir.F32Type.get()
            return [*_path(a, f32, source, result), *_path(f32, b, source, result)]
        case ir.FloatType(), ir.FloatType():
            return [("arith.extf" if a.width < b.width else "arith.truncf", b)]
        case ir.FloatType(), _:
            return [(f"arith.fpto{result}i", b)]
        case _, ir.FloatType():
            return [(f"arith.{source}itofp", b)]
    return [(f"arith.ext{source}i" if a.width < b.width else "arith.trunci", b)]


def is_truth(kind: Any) -> bool:
    """Return whether a type is that of truth values, whose one bit is unsigned."""
    element = element_type(kind)
    return isinstance(element, ir.IntegerType) and element.width == 1


def is_float(kind: Any) -> bool:
    """Return whether a type is a floating-point type, or one of vectors or tiles of it."""
    return isinstance(element_type(kind), ir.FloatType)


def element_type(kind: Any) -> Any:
    """Return the element type of a vector or tile, or the type itself for a scalar."""
    return kind.element_type if isinstance(kind, ir.VectorType | ir.RankedTensorType) else kind


def in_shape_of(kind: Any, element: Any) -> Any:
    """Return the type of so many elements of another type as there are in a type."""
    match kind:
        case ir.VectorType():
            return ir.VectorType.get(list(kind.shape), element)
        case ir.RankedTensorType():
            return ir.RankedTensorType.get(list(kind.shape), element, kind.encoding)
    return element
