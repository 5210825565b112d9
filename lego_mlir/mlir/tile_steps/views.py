"""Views of tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.shared_tiles import reshaped_tile, transposed_tile
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import element_of, shape_of, shared_layout_of, shared_tile_type


def transposed_view(shared: Any, order: Sequence[int]) -> Any:
    """Build the transpose of a tile in shared memory, which is a view of it."""
    layout = shared_layout_of(shared)
    assert layout is not None
    shape = [shape_of(shared)[d] for d in order]
    kind = shared_tile_type(shape, element_of(shared), transposed_tile(layout, tuple(order)))
    return tiles.transpose(kind, shared, order)


def reshaped_view(shared: Any, shape: Sequence[int]) -> Any:
    """Build a tile of another shape in shared memory, which is a view of one there."""
    layout = shared_layout_of(shared)
    assert layout is not None
    found = reshaped_tile(layout, tuple(shape))
    return tiles.reshape(shared_tile_type(shape, element_of(shared), found), shared)
