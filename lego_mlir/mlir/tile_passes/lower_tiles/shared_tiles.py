"""Tiles in shared memory: threads store and load what a layout gives them.

    %s = "lego.shared_tile"(%stages, %stage) {layout = #M} : ... -> tensor<64x64xf16, #S>
    %x = "lego.convert"(%s) : (tensor<64x64xf16, #S>) -> tensor<64x64xf16, #D>

becomes

    %x:2 = "lego.load_parts"(%stages, %stage, %i, %j) {layout = #M, registers = ...}

or `lego.load_matrices` where the layouts allow `ldmatrix`. A conversion into shared memory has a
buffer of its own. A fence follows the stores, for `wgmma` and TMA access memory by another proxy
than threads do:

    %room = "lego.alloc"() {layout = #M, lego.alignment = 1024 : i64}
    "lego.store_parts"(%room, %i, %j, %x0, %x1) {layout = #M, registers = ...}
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}

A transpose is another view of the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.conversions.matrices import Matrices, plan_matrices
from lego_mlir.analysis.distributed.conversions.shared_access import holds_rows, plan_store
from lego_mlir.analysis.distributed.slices import slice_of_cta
from lego_mlir.analysis.shared_tiles import reshaped_tile, transposed_tile
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.buffers import DYNAMIC_ALIGNMENT
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.matrices import load_by_matrices
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shared_memory import store_side
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    part_types,
    register_factors,
    repeated,
    without_copies,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_ASYNC_PROXY = (9, 0)
"""The first compute capability whose instructions access shared memory by the async proxy."""


@dataclass(frozen=True)
class SharedTile:
    """A tile in shared memory.

    Attributes:
        buffer: the memory, a memref of one dimension.
        layout: of the memory. Its last dimensions are the tile's.
        index: the values of its other dimensions, such as the stage of a ring buffer.
        element: the type of an element.
    """

    buffer: Any
    layout: Layout
    index: tuple[Any, ...]
    element: Any

    def transposed(self, order: Sequence[int]) -> SharedTile:
        """Return the tile whose dimension k is `order[k]` of this one."""
        outer = len(self.index)
        full = (*range(outer), *(outer + d for d in order))
        return SharedTile(self.buffer, transposed_tile(self.layout, full), self.index, self.element)

    def reshaped(self, shape: Sequence[int]) -> SharedTile:
        """Return the tile whose elements, in their order, have the indices of another shape."""
        outer = [int(n) for n in self.layout.dims[: len(self.index)]]
        layout = reshaped_tile(self.layout, (*outer, *shape))
        return SharedTile(self.buffer, layout, self.index, self.element)


def store_shared(tile: Fragment, layout: Layout, threads: Threads) -> SharedTile:
    """Build a tile in a buffer of its own.

    Args:
        tile: what a thread holds of it.
        layout: of the tile in shared memory.
        threads: those of the kernel.
    """
    buffer = allocate(layout_attribute(layout), tile.element, DYNAMIC_ALIGNMENT)
    made = SharedTile(buffer, layout, (), tile.element)
    store_in(made, layout, tile, threads)
    return made


def store_in(target: SharedTile, memory: Layout, tile: Fragment, threads: Threads) -> None:
    """Build the stores of a tile to one in shared memory, and a fence behind them.

    Args:
        target: the tile in shared memory.
        memory: its layout, without the dimensions that are not the tile's.
        tile: what a thread holds.
        threads: those that hold the tile.
    """
    instructions = matrix_instructions(threads.kernel.target)
    plan = plan_store(tile.layout, memory, bytes_of(tile.element), instructions)
    attribute = layout_attribute(target.layout)
    store_side(tile, target.buffer, attribute, plan, threads, target.index)
    if threads.kernel.target.capability >= _ASYNC_PROXY:
        nvvm.fence_async_shared()


def load_shared(
    tile: SharedTile,
    layout: DistributedLayout,
    threads: Threads,
    offsets: Sequence[int] | None = None,
) -> Fragment:
    """Build the loads of a tile by the threads that hold it, by `ldmatrix` if that fits.

    Args:
        tile: the tile.
        layout: of the result.
        threads: those of the kernel.
        offsets: the first index of the slice that is loaded; `None` for the whole tile.
    """
    attribute = layout_attribute(tile.layout)
    first = tuple(offsets or [0] * layout.rank)
    size = bytes_of(tile.element)
    if layout.ctas == 1 and matrix_instructions(threads.kernel.target).load:
        for matrices in _matrices(layout, tile.layout, len(tile.index), first, size):
            index = [*tile.index, *_beyond(threads.coordinates(matrices.rows), first)]
            return load_by_matrices(layout, tile.element, tile.buffer, attribute, matrices, index)
    own = slice_of_cta(without_copies(layout))
    assert own is not None  # the verifier has seen to it
    outer = len(tile.index)
    factors = [(outer + dim, n, stride) for dim, n, stride in register_factors(own)]
    index = [*tile.index, *_beyond(threads.coordinates(own), first)]
    kinds = part_types(own, tile.element)
    parts = tiles.load_parts(kinds, tile.buffer, index, attribute, factors, in_bounds=True)
    return repeated(Fragment(without_copies(layout), tuple(parts)), layout)


def _beyond(index: Sequence[Any], offsets: Sequence[int]) -> list[Any]:
    """Build an index that lies some elements further along each dimension."""
    return [
        build.binary("addi", x, build.index(n)) if n else x
        for x, n in zip(index, offsets, strict=True)
    ]


@lru_cache(maxsize=1 << 8)
def _matrices(
    layout: DistributedLayout,
    memory: Layout,
    outer: int,
    first: tuple[int, ...],
    element_bytes: int,
) -> tuple[Matrices, ...]:
    """Return the ways in which `ldmatrix` loads a slice of a memory, from `first` on, to a layout.

    Its `outer` first dimensions are not the tile's.
    """
    planned = (
        plan_matrices(layout, element_bytes, is_transposed=t, is_store=False) for t in (False, True)
    )
    window = tuple(slice(x, x + n) for x, n in zip(first, layout.shape, strict=True))
    offsets = np.asarray(memory.offsets())[(0,) * outer][window].reshape(-1)
    return tuple(m for m in planned if m and holds_rows(offsets, m, element_bytes))
