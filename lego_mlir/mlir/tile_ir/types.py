"""The types of tiles: ranked tensors whose encoding is a distributed layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute, layout_text


def is_tile(value: Any) -> bool:
    """Return whether a value is a tile."""
    return isinstance(value.type, ir.RankedTensorType)


def has_tiles(op: Any) -> bool:
    """Return whether an operation has operands or results that are tiles."""
    return any(is_tile(value) for value in (*op.operands, *op.results))


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a tile."""
    return tuple(ir.RankedTensorType(value.type).shape)


def element_of(value: Any) -> Any:
    """Return the element type of a tile, and of another value its type."""
    kind = value.type
    return ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind


def bytes_of(element: Any) -> int:
    """Return the bytes of an element in memory: 1 for i1, 8 for an index."""
    return max(1, getattr(element, "width", 64) // 8)


def layout_of(value: Any) -> DistributedLayout | None:
    """Return the distributed layout of a tile, `None` if it is not placed yet.

    Raises:
        LegoError: its encoding is no distributed layout of this shape.
    """
    kind = ir.RankedTensorType(value.type)
    if kind.encoding is None:
        return None
    return DistributedLayout.parse(layout_text(kind.encoding), tuple(kind.shape))


def tile_type(shape: Sequence[int], element: Any, layout: DistributedLayout | None = None) -> Any:
    """Return the type of a tile."""
    encoding = None if layout is None else layout_attribute(layout.layout)
    return ir.RankedTensorType.get(list(shape), element, encoding)


def place(value: Any, layout: DistributedLayout) -> None:
    """Give a tile a layout, in place: its type changes, and its definition and uses stay."""
    value.set_type(tile_type(layout.shape, element_of(value), layout))
