"""Tiles in shared memory: threads load what a layout gives them; a transpose is another view.

    %s = "lego.shared_tile"(%stages, %stage) {layout = #M} : ... -> tensor<64x64xf16, #S>
    %x = "lego.convert"(%s) : (tensor<64x64xf16, #S>) -> tensor<64x64xf16, #D>

becomes

    %x:2 = "lego.load_parts"(%stages, %stage, %i, %j) {layout = #M, registers = ...}

or `lego.load_matrices` where the layouts allow `ldmatrix`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.conversions.matrices import (
    ROW_BYTES,
    Matrices,
    plan_matrices,
)
from lego_mlir.analysis.shared_tiles import transposed_tile
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.matrices import load_by_matrices
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    part_types,
    register_factors,
    repeated,
    without_copies,
)
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


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


def load_shared(tile: SharedTile, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Build the loads of a tile by the threads that hold it, by `ldmatrix` if that fits.

    Args:
        tile: the tile.
        layout: of the result.
        threads: those of the kernel.
    """
    attribute = layout_attribute(tile.layout)
    if matrix_instructions(threads.kernel.target).load:
        for matrices in _matrices(layout, tile.layout, len(tile.index), bytes_of(tile.element)):
            return load_by_matrices(
                layout, tile.element, tile.buffer, attribute, matrices, threads, tile.index
            )
    own = without_copies(layout)
    outer = len(tile.index)
    factors = [(outer + dim, n, stride) for dim, n, stride in register_factors(own)]
    index = [*tile.index, *threads.coordinates(own)]
    kinds = part_types(own, tile.element)
    parts = tiles.load_parts(kinds, tile.buffer, index, attribute, factors, in_bounds=True)
    return repeated(Fragment(own, tuple(parts)), layout)


@lru_cache(maxsize=1 << 8)
def _matrices(
    layout: DistributedLayout, memory: Layout, outer: int, element_bytes: int
) -> tuple[Matrices, ...]:
    """Return the ways in which `ldmatrix` loads a layout from a memory with `outer` dimensions."""
    planned = (
        plan_matrices(layout, element_bytes, is_transposed=t, is_store=False) for t in (False, True)
    )
    offsets = np.asarray(memory.offsets())[(0,) * outer].reshape(-1)
    return tuple(m for m in planned if m and _has_rows(offsets, m, element_bytes))


def _has_rows(offsets: Any, matrices: Matrices, element_bytes: int) -> bool:
    """Return whether the rows of matrices are 16 aligned bytes each, at offsets of elements."""
    per_row = ROW_BYTES // element_bytes
    rows = offsets[matrices.rows.elements()]
    rows = rows.reshape(*rows.shape[:-1], -1, per_row)
    steps = np.arange(per_row)
    return bool((rows[..., :1] % per_row == 0).all() and (rows == rows[..., :1] + steps).all())
