"""The matrix transpose element by element, as in the CUDA SDK (papers/lego, Figure 13)."""

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
from lego_mlir.kernels.permute.kernel import tiles


def elementwise(
    shape: Sequence[int],
    a: TensorType,
    b: TensorType,
    tile: int,
    rows: int,
    *,
    staged: bool,
    reference: str,
) -> Kernel:
    """The transpose of the last two dimensions, one element a thread at a time.

    Args:
        shape: of the input, …×m×n.
        a: the input, in any layout.
        b: the output.
        tile: side of the square tile that one block moves; a power of two.
        rows: rows of the tile that its threads move at a time.
        staged: through a swizzled tile in shared memory, or straight.
        reference: what it computes, by name.
    """
    *lead, m, n = shape
    ones, zeros = [1] * len(lead), (0,) * len(lead)
    down, across = tiles(m, tile), tiles(n, tile)
    blocks = OrderBy(Row(*lead, down, across))
    threads = OrderBy(Row(rows, tile))
    steps = OrderBy(Row(tile // rows, rows))
    source = _tiled(a.layout, (*lead, m, n), [*lead, down, across], [*ones, tile, tile])
    target = _tiled(b.layout, (*lead, n, m), [*lead, across, down], [*ones, tile, tile])
    swizzled = OrderBy(GenP([tile, tile], swizzle))

    def straight(a: Any, b: Any) -> None:
        *at, i, j = blocks.inv(block_id())
        row, column = threads.inv(thread_id())
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            value = a.view(source)[*at, i, j, *zeros, r, column]
            b.view(target)[*at, j, i, *zeros, column, r] = value

    def through_shared(a: Any, b: Any) -> None:
        *at, i, j = blocks.inv(block_id())
        row, column = threads.inv(thread_id())
        buffer = shared(dtype, swizzled)
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            buffer[r, column] = a.view(source)[*at, i, j, *zeros, r, column]
        barrier()
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            b.view(target)[*at, j, i, *zeros, r, column] = buffer[column, r]

    dtype = a.dtype
    chosen = through_shared if staged else straight
    chosen.__name__ = "transpose"
    return kernel(
        grid=prod([*lead, down, across]),
        block=rows * tile,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
    )(chosen)


def _tiled(layout: Layout, shape: Sequence[int], *levels: list[int]) -> Layout:
    """A tensor's layout, indexed tile by tile."""
    if layout.view is None:
        return layout.TileBy(*levels)
    return layout.compose(OrderBy(Row(*shape)).TileBy(*levels))
