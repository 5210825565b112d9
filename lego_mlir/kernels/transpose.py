"""The matrix transpose, through a swizzled tile in shared memory (papers/lego, section 6.3)."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import GenP, Layout, OrderBy, Row, swizzle
from lego_mlir.diagnostics import LegoError
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


def transpose(
    m: int,
    n: int,
    dtype: str = "f32",
    *,
    a: Layout | None = None,
    b: Layout | None = None,
    tile: int = 32,
    rows: int = 8,
) -> Kernel:
    """A kernel that writes the transpose of an m×n matrix.

    Args:
        m: rows of the input, a multiple of `tile`.
        n: columns of the input, a multiple of `tile`.
        dtype: element type.
        a: where the input's elements lie, m×n; row-major by default.
        b: where the output's elements lie, n×m; row-major by default.
        tile: side of the square tile that one block moves; a power of two.
        rows: rows of the tile that its threads move at a time; a divisor of `tile`.

    Raises:
        LegoError: a size is not a multiple of what it should be.
    """
    for what, size, unit in (("m", m, tile), ("n", n, tile), ("tile", tile, rows)):
        if size < 1 or unit < 1 or size % unit:
            raise LegoError(
                f"transpose: {what} = {size} is no positive multiple of {unit}",
                hint="choose another tile or rows",
            )
    down, across = m // tile, n // tile
    blocks = OrderBy(Row(down, across))
    threads = OrderBy(Row(rows, tile))
    steps = OrderBy(Row(tile // rows, rows))
    source = (a or OrderBy(Row(m, n))).TileBy([down, across], [tile, tile])
    target = (b or OrderBy(Row(n, m))).TileBy([across, down], [tile, tile])
    staged = OrderBy(GenP([tile, tile], swizzle))

    @kernel(
        grid=down * across,
        block=rows * tile,
        reference="transpose",
        parameters={"a": TensorType(dtype, source), "b": TensorType(dtype, target)},
    )
    def transpose(a: Any, b: Any) -> None:
        i, j = blocks.inv(block_id())
        row, col = threads.inv(thread_id())
        buffer = shared(dtype, staged)
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            buffer[r, col] = a[i, j, r, col]
        barrier()
        for step in loop(tile // rows):
            r = steps.apply(step, row)
            b[j, i, r, col] = buffer[col, r]

    return transpose
