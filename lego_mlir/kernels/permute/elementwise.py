"""Kernel bodies: transposes element by element, as in the CUDA SDK (papers/lego, Figure 13)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lego_mlir.algebra import GenP, Layout, OrderBy, Row, swizzle
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    barrier,
    block_id,
    kernel,
    loop,
    shared,
    thread_id,
)
from lego_mlir.kernels.permute.problem import count_tiles


def elementwise_transpose(
    shape: Sequence[Any],
    a: TensorType,
    b: TensorType,
    tile: int,
    rows: int,
    *,
    through_shared: bool,
    reference: str,
) -> Kernel:
    """Return the kernel that transposes the last two dimensions, one element in each access.

    Args:
        shape: sizes of the input, …×m×n.
        a: type of the input, with any layout.
        b: type of the output, with any layout.
        tile: side of the square tile of a CTA; a power of two.
        rows: rows of the tile that the threads of a CTA transpose at a time.
        through_shared: whether elements go through a swizzled tile in shared memory.
        reference: name of the reference that the result is compared with.
    """
    *lead, m, n = shape
    ones, zeros = [1] * len(lead), (0,) * len(lead)
    down, across = count_tiles(m, tile), count_tiles(n, tile)
    rasterization = OrderBy(Row(*lead, down, across))
    threads = OrderBy(Row(rows, tile))
    steps = OrderBy(Row(tile // rows, rows))
    source = _tiled(a.layout, (*lead, m, n), [*lead, down, across], [*ones, tile, tile])
    target = _tiled(b.layout, (*lead, n, m), [*lead, across, down], [*ones, tile, tile])
    shared_layout = OrderBy(GenP([tile, tile], swizzle))

    def direct(a: Any, b: Any) -> None:
        *batch, i, j = rasterization.inv(block_id())
        row, column = threads.inv(thread_id())
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            value = a.view(source)[*batch, i, j, *zeros, r, column]
            b.view(target)[*batch, j, i, *zeros, column, r] = value

    def swizzled_tile(a: Any, b: Any) -> None:
        *batch, i, j = rasterization.inv(block_id())
        row, column = threads.inv(thread_id())
        buffer = shared(dtype, shared_layout)
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            buffer[r, column] = a.view(source)[*batch, i, j, *zeros, r, column]
        barrier()
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            b.view(target)[*batch, j, i, *zeros, r, column] = buffer[column, r]

    dtype = a.dtype
    chosen = swizzled_tile if through_shared else direct
    chosen.__name__ = "transpose"
    return kernel(
        grid=prod([*lead, down, across]),
        block=rows * tile,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
    )(chosen)


def _tiled(layout: Layout, shape: Sequence[int], *levels: list[int]) -> Layout:
    """Return the layout of a tensor of tiles: the tile's index, then the element's in it."""
    if layout.view is None:
        return layout.TileBy(*levels)
    return layout.compose(OrderBy(Row(*shape)).TileBy(*levels))
