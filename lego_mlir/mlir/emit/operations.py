"""Builders of operations by their names, which stand at the bottom of all others.

They insert at the current insertion point, with the current location. The bindings' classes of
operations take longer to load than a kernel to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir


def make(name: str, kind: Any, *operands: Any, **attributes: Any) -> Any:
    """Build an operation of one result of type `kind`; return the result."""
    return ir.Operation.create(
        name, results=[kind], operands=list(operands), attributes=attributes
    ).results[0]


def assembly(
    text: str,
    constraints: str,
    operands: Sequence[Any],
    kind: Any = None,
    *,
    has_effects: bool | None = None,
) -> Any:
    """Build inline PTX; return its result, if it has one.

    Args:
        text: the instructions.
        constraints: of the result and the operands, as LLVM writes them.
        operands: what the instructions take.
        kind: the type of the result; `None` if there is none.
        has_effects: whether they do more than compute; by default if they have no result.
    """
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(constraints),
    }
    if kind is None if has_effects is None else has_effects:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    results = [] if kind is None else [kind]
    op = ir.Operation.create(
        "llvm.inline_asm", results=results, operands=list(operands), attributes=attributes
    )
    return None if kind is None else op.results[0]


def constant(kind: Any, number: int) -> Any:
    """Build an integer or index of type `kind`."""
    return make("arith.constant", kind, value=ir.IntegerAttr.get(kind, number))


def plus(offset: Any, distance: int) -> Any:
    """Build an index that is known not to overflow: an offset and a distance."""
    further = constant(offset.type, distance)
    flags = ir.Attribute.parse("#arith.overflow<nsw>")
    return make("arith.addi", offset.type, offset, further, overflowFlags=flags)


def vector_element(value: Any, position: int) -> Any:
    """Build an element of a vector of one dimension."""
    at = ir.DenseI64ArrayAttr.get([position])
    kind = ir.VectorType(value.type).element_type
    return make("vector.extract", kind, value, static_position=at)


def vector_slice(kind: Any, value: Any, first: int) -> Any:
    """Build the elements of a vector of one dimension from one on, as one of type `kind`."""
    i64 = ir.IntegerType.get_signless(64)
    numbers = {"offsets": first, "sizes": ir.VectorType(kind).shape[0], "strides": 1}
    given = {name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n)]) for name, n in numbers.items()}
    return make("vector.extract_strided_slice", kind, value, **given)


def as_word(part: Any) -> Any:
    """Build the 32 bits of a vector, or of one element, as an i32."""
    i32 = ir.IntegerType.get_signless(32)
    if not isinstance(part.type, ir.VectorType):
        part = make("vector.broadcast", ir.VectorType.get([1], part.type), part)
    return vector_element(make("vector.bitcast", ir.VectorType.get([1], i32), part), 0)
