"""Where a tile lies in a stage of a ring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Col, Layout, OrderBy, Row
from lego_mlir.analysis.distributed.slices import slice_of_cta
from lego_mlir.analysis.shared_tiles import swizzled_tile
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.swizzle import CHUNK
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import typical
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import bytes_of, layout_of
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import memory_order


def stage_layout(kernel: TileKernel, access: Any, shape: Sequence[int]) -> Layout:
    """Return the layout of a tile with the widest swizzle that its rows in memory allow.

    Rows of an odd number of chunks, which are swizzled by none, stay whole in tiles that are
    stored: they begin in different banks, and TMA stores each at once. `wgmma` reads columns of
    chunks instead.

    Args:
        kernel: the kernel.
        access: the lego.load or lego.store, which says how its elements lie in memory.
        shape: of the tile. A stage has room for the slice of each CTA that holds the tile.
    """
    if kernel.ctas > 1:
        found = layout_of([*access.results, access.operands[0]][0])
        own = None if found is None else slice_of_cta(found)
        if own is None:
            raise LegoError(
                "the CTAs of a cluster do not divide this tile into slices, so rings cannot have it"
            )
        return OrderBy(Row(*own.shape))
    (buffer,) = [x for x in access.operands if isinstance(x.type, ir.MemRefType)]
    layout = kernel.layouts.of(access)
    # Stores to tensors of run-time sizes have no rings, but those to tensors that are picked have.
    if access.name == dialect.LOAD or dialect.made_by(buffer, dialect.PICK):
        layout = typical(layout, buffer)
    order = memory_order(layout, slice_of(access), tuple(shape))
    size = bytes_of(ir.MemRefType(buffer.type).element_type)
    if access.name == dialect.STORE and len(shape) == 2:
        chunks, rest = divmod(shape[order[-1]] * size, CHUNK)
        if chunks % 2 and not rest:
            return OrderBy(Row(*shape) if order[-1] else Col(*shape))
    try:
        return swizzled_tile((shape[0], shape[1]), order[-1], size)
    except (LegoError, IndexError):  # its rows are too short, or it has one dimension
        return OrderBy(Row(*shape))
