"""Permutations by gathered words: narrow elements whose runs are short, or begin anywhere.

A CTA takes a tile that has a long run of the input and a long run of the output, as in `runs`.

- The chunks of up to 16 bytes that the input's rows touch are copied into shared memory as they
  are, by asynchronous copies: pitches there equal the input's strides modulo a chunk, and the tile
  is shifted by its phase. So no element is moved by itself, and nothing has a condition but the
  last chunk of the input.
- A thread gathers a word of the output from wherever its elements lie in shared memory. It keeps
  its place in a row, and steps at distances that are the same for all its elements. So it finds out
  once where these lie, and each step is a load for each element, and a store.
- Ends of rows are stored after their words, and tiles may overlap along a row of the output, so
  that only ends of rows are stored by parts of sectors, as in `by_words`.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, RegP, Row
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.kernels.permute.by_gathers.config import (
    GatherConfig,
    resident,
    shared_units,
    walks_of,
)
from lego_mlir.kernels.permute.by_gathers.tile import GatherTile
from lego_mlir.kernels.permute.by_words.config import tiled_modes
from lego_mlir.kernels.permute.by_words.tile_kernel import by_first, tile_kernel
from lego_mlir.kernels.permute.conditions import where
from lego_mlir.kernels.permute.dependence import complete_tile
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import raster_order


def gather_permutation(
    name: str,
    problem: PermuteProblem,
    config: GatherConfig,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation by gathered words of tiles of whole runs.

    Args:
        name: name of the kernel.
        problem: the permutation of units.
        config: its tile, one that threads can go over.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    walks = walks_of(problem, config)
    assert walks is not None
    source, target, ends = walks.source, walks.target, walks.ends
    modes = tiled_modes(problem, config.tile, config.sector)
    counts = [mode.count for mode in modes]
    rasterization = OrderBy(
        RegP(counts, raster_order(problem, config.tile, counts, config.unit_bytes))
    )
    units = shared_units(source, config.pitches)
    tile_bytes = prod(config.tile) * config.unit_bytes

    def permute(a: Any, b: Any) -> None:
        thread = lg.thread_id()
        blocks = rasterization.inv(lg.block_id())
        tile = GatherTile(source, target, config.pitches, modes, blocks, units, config.unit_bytes)
        buffer = lg.shared(a.dtype, OrderBy(Row(units, config.unit)))
        chunks = buffer.view(OrderBy(Row(units // config.chunk, config.chunk * config.unit)))
        x, y = a.view(source.flat_words(config.unit)), b.view(target.flat_words(config.unit))

        first = partial(by_first, thread, config.threads)
        first(walks.reading.count, lambda: tile.read(walks.reading, thread, x, chunks))
        flat = a.view(OrderBy(Row(source.total, config.unit)))
        tile.read_last(thread, flat, buffer, fills=True)
        lg.commit_group()
        lg.wait_group(0)
        complete_tile(tile_bytes)
        first(walks.writing.count, lambda: tile.write(walks.writing, thread, buffer, y))
        if ends is not None:
            stored = b.view(OrderBy(Row(target.total, config.unit)))

            def write_ends() -> None:
                first(ends.count, lambda: tile.write_ends(ends, thread, buffer, stored))

            where(tile.has_ends, write_ends)

    return tile_kernel(
        permute,
        name,
        problem,
        ctas=rasterization.size,
        threads=config.threads,
        ctas_per_sm=resident(problem, config),
        unit_bytes=config.unit_bytes,
        tile_bytes=tile_bytes,
        a=a,
        b=b,
        reference=reference,
    )
