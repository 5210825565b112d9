"""Conversions between element types."""

from __future__ import annotations

from typing import Any

from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.frontend.trace import Trace
from lego_mlir.mlir.bindings import ir


def cast(value: Any, dtype: str, trace: Trace) -> Any:
    """Convert an SSA value, or each element of a vector, to another element type.

    Args:
        value: of a floating-point, integer, index or truth type, or a vector of these.
        dtype: MLIR's name of the element type.
        trace: in which the operations are recorded.

    Raises:
        LegoError: there is no such type.
    """
    check_dtype(dtype, trace.error)
    target = ir.Type.parse(dtype)
    for name, element in _path(element_type(value.type), target):
        kind = element
        if isinstance(value.type, ir.VectorType):
            kind = ir.VectorType.get(list(value.type.shape), element)
        (value,) = trace.create(name, [kind], [value])
    return value


def _path(a: Any, b: Any) -> list[tuple[str, Any]]:
    """Return the operations that convert between two element types, and their types."""
    if a == b:
        return []
    if isinstance(a, ir.IndexType):
        # Of 64 bits, whatever a float can hold: the back end narrows what is proven to be small.
        whole = b if isinstance(b, ir.IntegerType) else ir.IntegerType.get_signless(64)
        return [("arith.index_cast", whole), *_path(whole, b)]
    signed = "u" if is_truth(a) else "s"
    match a, b:
        case ir.FloatType(), ir.FloatType() if a.width == b.width:
            f32 = ir.F32Type.get()
            return [*_path(a, f32), *_path(f32, b)]
        case ir.FloatType(), ir.FloatType():
            return [("arith.extf" if a.width < b.width else "arith.truncf", b)]
        case ir.FloatType(), _:
            return [("arith.fptosi", b)]
        case _, ir.FloatType():
            return [(f"arith.{signed}itofp", b)]
    return [(f"arith.ext{signed}i" if a.width < b.width else "arith.trunci", b)]


def is_truth(kind: Any) -> bool:
    """Return whether a type is that of truth values, whose one bit is unsigned."""
    element = element_type(kind)
    return isinstance(element, ir.IntegerType) and element.width == 1


def element_type(kind: Any) -> Any:
    """Return the element type of a vector type, or the type itself for a scalar."""
    return kind.element_type if isinstance(kind, ir.VectorType) else kind
