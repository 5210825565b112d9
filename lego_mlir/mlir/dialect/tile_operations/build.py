"""What all builders of operations on tiles need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir


def element_type(tile: Any) -> Any:
    """Return the element type of a tile."""
    return ir.RankedTensorType(tile.type).element_type


def i64(n: int) -> Any:
    """Return an attribute of 64 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)


def build(
    name: str,
    results: Sequence[Any],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any,
) -> list[Any]:
    """Build an operation at the current insertion point, and return its results."""
    op = ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes, loc=location
    )
    return list(op.results)
