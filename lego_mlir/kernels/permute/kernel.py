"""Kernel bodies: permutations of dimensions by vectors of up to 16 bytes, on both sides.

A CTA transposes a tile of the two dimensions along which input and output are contiguous. Each
thread loads small blocks with as many rows as the output's vectors are wide, transposes them in its
registers, and writes the rows that result into shared memory, whose layout XORs chunks of a row so
that neither side has bank conflicts. Then the tile is stored row by row.

If rows of the output are not aligned, tiles are skewed: the tiles of a row start where a vector
does, and the input is loaded element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lego_mlir.algebra import OrderBy, RegP, Row, Skew
from lego_mlir.frontend import Kernel, TensorType, block_id, kernel, shared, thread_id
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.kernels.cache_hints import LINE_BYTES, eviction_of
from lego_mlir.kernels.permute.config import CopyConfig, TileConfig
from lego_mlir.kernels.permute.dependence import complete_tile, dependence, dependent_ctas
from lego_mlir.kernels.permute.problem import (
    Mode,
    PermuteProblem,
    count_tiles,
    source_view,
    target_view,
)


def tiled_permutation(
    name: str,
    problem: PermuteProblem,
    config: TileConfig,
    element_bytes: int,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation that is not a copy.

    Args:
        name: name of the kernel.
        problem: the permutation.
        config: its tiles.
        element_bytes: bytes of an element.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    outer, x, y = problem.others, problem.read, problem.written
    lead, ones, zeros = [m.size for m in outer], [1] * len(outer), (0,) * len(outer)
    span = config.skew_span
    factors = [m.target % span for m in (*outer, x)] if span > 1 else [0] * (len(outer) + 1)
    skew = span - 1 if any(factors) else 0
    down, across = count_tiles(y.size + skew, config.down), count_tiles(x.size, config.across)
    # Consecutive CTAs store consecutive tiles of the output's rows.
    rasterization = OrderBy(
        RegP([*lead, down, across], [*range(len(lead)), len(lead) + 1, len(lead)])
    )
    readers = OrderBy(
        Row(
            config.down // (config.thread_rows * config.thread_blocks),
            config.across // config.load_width,
        )
    )
    writers = OrderBy(Row(config.across // config.stores, config.down // config.store_width))
    source = source_view([*outer, y, x]).TileBy(
        [*lead, down, across],
        [*ones, config.thread_blocks, 1],
        [*ones, *readers.dims],
        [*ones, config.thread_rows, config.load_width],
        skew=_skew(factors, len(outer), span),
    )
    target = target_view([*outer, x, y]).TileBy(
        [*lead, across, down],
        [*ones, config.stores, 1],
        [*ones, *writers.dims],
        [*ones, 1, config.store_width],
        skew=_skew(factors, len(outer) + 1, span),
    )
    tile = config.shared_layout(element_bytes)
    rows, columns = readers.dims
    filled = tile.TileBy(
        [1, config.thread_blocks], [columns, rows], [config.load_width, config.thread_rows]
    )
    drained = tile.TileBy([config.stores, 1], list(writers.dims), [1, config.store_width])

    def permute(a: Any, b: Any) -> None:
        *batch, i, j = rasterization.inv(block_id())
        row, column = readers.inv(thread_id())
        buffer = shared(dtype, filled)
        read = a.view(source)[*batch, i, j, *zeros, :, 0, *zeros, row, column, *zeros, :, :]
        for r in range(config.thread_blocks):
            buffer[0, r, column, row, :, :] = read[r].T
        complete_tile(tile_bytes)
        row, column = writers.inv(thread_id())
        out = buffer.view(drained)[:, 0, row, column, 0, :]
        b.view(target)[*batch, j, i, *zeros, :, 0, *zeros, row, column, *zeros, 0, :] = out

    dtype, tile_bytes = a.dtype, config.down * config.across * element_bytes
    permute.__name__ = name
    return kernel(
        grid=prod([*lead, down, across]),
        block=config.threads,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
        eviction=eviction_of(problem.moved_bytes(element_bytes), element_bytes),
        prefetch=LINE_BYTES,
        pdl=dependence(tile_bytes),
        pdl_ctas=dependent_ctas(tile_bytes),
    )(permute)


def _skew(factors: Sequence[int], dim: int, span: int) -> Skew | None:
    """Return the skew of a dimension by the factors of the others; `None` if they are all 0."""
    return Skew(dim, (*factors[:dim], 0, *factors[dim:]), span) if any(factors) else None


def copy_permutation(
    name: str,
    problem: PermuteProblem,
    config: CopyConfig,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation whose input and output are contiguous along one mode.

    Args:
        name: name of the kernel.
        problem: the permutation.
        config: what a CTA copies.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    outer, x = problem.others or (Mode(1, 0, 0),), problem.read
    *lead, rows = (m.size for m in outer)
    ones, zeros = [1] * len(lead), (0,) * len(lead)
    grid = [
        *lead,
        count_tiles(rows, config.rows),
        count_tiles(x.size, config.columns * config.width),
    ]
    rasterization = OrderBy(Row(*grid))
    threads = OrderBy(Row(config.rows, config.columns))
    levels = grid, [*ones, *threads.dims], [*ones, 1, config.width]
    source = source_view([*outer, x]).TileBy(*levels)
    target = target_view([*outer, x]).TileBy(*levels)

    def copy(a: Any, b: Any) -> None:
        tile, thread = rasterization.inv(block_id()), threads.inv(thread_id())
        index = (*tile, *zeros, *thread, *zeros, 0, slice(None))
        b.view(target)[index] = a.view(source)[index]

    copy.__name__, element_bytes = name, bytes_of(a.dtype)
    return kernel(
        grid=prod(grid),
        block=config.rows * config.columns,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
        eviction=eviction_of(problem.moved_bytes(element_bytes)),
        prefetch=LINE_BYTES,
        pdl=True,
        pdl_ctas=dependent_ctas(config.rows * config.columns * config.width * element_bytes),
    )(copy)
