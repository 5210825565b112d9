"""The types of tiles: ranked tensors whose encoding is their layout.

A tile in registers has a distributed layout, `#lego.layout<"...">`. One in shared memory has a
layout from its index to the element's offset, `#lego.shared<"...">`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.encodings import is_shared, layout_text
from lego_mlir.mlir.layouts import layout_attribute, parsed_shared, shared_attribute

Placement: TypeAlias = DistributedLayout | Layout
"""Where a tile is: in registers by a distributed layout, or in shared memory by a layout."""


def is_tile(value: Any) -> bool:
    """Return whether a value is a tile."""
    return isinstance(value.type, ir.RankedTensorType)


def has_tiles(op: Any) -> bool:
    """Return whether an operation has operands or results that are tiles."""
    tensor = ir.RankedTensorType
    for values in (op.results, op.operands):
        for value in values:
            if isinstance(value.type, tensor):
                return True
    return False


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
    """Return the distributed layout of a tile; `None` if it is not placed, or in shared memory.

    Raises:
        LegoError: its encoding is no distributed layout of this shape.
    """
    return _layout_in(value.type)


@lru_cache(maxsize=1 << 10)
def _layout_in(kind: Any) -> DistributedLayout | None:
    """Return the distributed layout in the type of a tile; as `layout_of`."""
    if kind.encoding is None or is_shared(kind.encoding):
        return None
    return DistributedLayout.parse(layout_text(kind.encoding), tuple(kind.shape))


def is_register_tile(value: Any) -> bool:
    """Return whether a value is a tile in registers, placed or not."""
    return is_tile(value) and not is_shared_tile(value)


def is_placed(value: Any) -> bool:
    """Return whether a tile has a layout, in registers or in shared memory."""
    return ir.RankedTensorType(value.type).encoding is not None


def placement_of(value: Any) -> Placement | None:
    """Return the layout of a tile in registers or in shared memory, `None` if it has none.

    Raises:
        LegoError: its encoding is no layout.
    """
    return shared_layout_of(value) or layout_of(value)


def is_shared_tile(value: Any) -> bool:
    """Return whether a value is a tile in shared memory."""
    return is_shared_type(value.type)


def is_shared_type(kind: Any) -> bool:
    """Return whether a type is that of a tile in shared memory."""
    if not isinstance(kind, ir.RankedTensorType):
        return False
    encoding = ir.RankedTensorType(kind).encoding
    return encoding is not None and is_shared(encoding)


def shared_layout_of(value: Any) -> Layout | None:
    """Return the layout of a tile in shared memory, `None` of another one.

    Raises:
        LegoError: its encoding is no layout.
    """
    return shared_layout_in(value.type)


def shared_layout_in(kind: Any) -> Layout | None:
    """Return the layout in the type of a tile in shared memory, `None` of another type.

    Raises:
        LegoError: its encoding is no layout.
    """
    if not is_shared_type(kind):
        return None
    return parsed_shared(ir.RankedTensorType(kind).encoding)


def shared_tile_type(shape: Sequence[int], element: Any, layout: Layout) -> Any:
    """Return the type of a tile in shared memory."""
    return ir.RankedTensorType.get(list(shape), element, shared_attribute(layout))


def tile_type(shape: Sequence[int], element: Any, layout: DistributedLayout | None = None) -> Any:
    """Return the type of a tile."""
    encoding = None if layout is None else layout_attribute(layout.layout)
    return ir.RankedTensorType.get(list(shape), element, encoding)


def placed_type(shape: Sequence[int], element: Any, placement: Placement) -> Any:
    """Return the type of a tile that is in registers, or in shared memory."""
    if isinstance(placement, Layout):
        return shared_tile_type(shape, element, placement)
    return tile_type(shape, element, placement)


def place(value: Any, placement: Placement) -> None:
    """Give a tile a layout, in place: its type changes, and its definition and uses stay."""
    value.set_type(placed_type(shape_of(value), element_of(value), placement))
