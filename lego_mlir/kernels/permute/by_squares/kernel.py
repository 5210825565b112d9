"""Permutations by squares of narrow elements, which are transposed in registers.

A CTA takes a tile that has a long run of the input and a long run of the output, as in `runs`, and
accesses both memories, and shared memory, by words of 4 bytes wherever runs begin, as in
`by_words`. There units go into shared memory one by one; here no byte does.

- A thread loads a square: as many neighbouring units of a row of the input as a word has, of as
  many rows as are neighbours in the output. A row that begins inside of a word is loaded by two
  words, which are shifted. If a row of the tile has a word for nearly each lane of a warp, lanes
  load one word each and have the other one from the next lane: half as many requests, which the L1
  cache looks up lines for. Tiles are a little narrower for that.
- It transposes the square in registers, by permutations of bytes, and puts its columns into shared
  memory: words of the output's rows. In another order than its neighbours: so their words, which
  are apart by an odd number of words, lie in different banks.
- A word of the output that begins inside of a word of shared memory is taken as two, and shifted.
- Ends of rows are stored after their words, by threads that have nothing else to do: elements of
  many rows at a time. Tiles may overlap along a row of the output, as in `by_words`, so that only
  ends of rows are stored by parts of sectors. Or neighbouring threads store the words of whole
  sectors, as in `by_words`.
- Where the output's row is of several modes, a tile may begin anywhere in them: so it overlaps the
  next one by less than a sector, not by a step of the slowest of these modes.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, RegP, Row
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.kernels.permute.by_squares.config import (
    SquareConfig,
    pitches_of,
    resident,
    storing_ends,
    walks_of,
)
from lego_mlir.kernels.permute.by_squares.tile import SquareTile
from lego_mlir.kernels.permute.by_words.config import tiled_modes
from lego_mlir.kernels.permute.by_words.tile_kernel import by_first, tile_kernel
from lego_mlir.kernels.permute.conditions import where
from lego_mlir.kernels.permute.dependence import complete_tile
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import raster_order


def square_permutation(
    name: str,
    problem: PermuteProblem,
    config: SquareConfig,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation by squares of tiles of whole runs.

    Args:
        name: name of the kernel.
        problem: the permutation of units.
        config: its tile.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    source, target, reading, writing = walks_of(problem, config)
    has_ends = config.square > 1 and not target.is_aligned
    ends = storing_ends(target, config.threads) if has_ends else None
    joined = problem.joined(config.joined)
    modes = tiled_modes(joined, config.tile, config.sector)
    counts = [mode.count for mode in modes]
    rasterization = OrderBy(
        RegP(counts, raster_order(joined, config.tile, counts, config.unit_bytes))
    )
    pitches, units = pitches_of(source, target, config.pitch)
    tile_bytes = prod(config.tile) * config.unit_bytes

    def permute(a: Any, b: Any) -> None:
        thread = lg.thread_id()
        blocks = rasterization.inv(lg.block_id())
        tile = SquareTile(source, target, pitches, modes, blocks, units, config)
        buffer = lg.shared(a.dtype, OrderBy(Row(units, config.unit)))
        words = buffer.view(OrderBy(Row(units // config.square, config.square * config.unit)))
        x, y = a.view(source.flat_words(config.unit)), b.view(target.flat_words(config.unit))

        first = partial(by_first, thread, config.threads)
        first(reading.count, lambda: tile.read(reading, thread, x, words))
        if source.total % source.word:
            # Where that word belongs, `read` has put another one.
            lg.barrier()
        tile.read_last(thread, a.view(OrderBy(Row(source.total, config.unit))), buffer)
        complete_tile(tile_bytes)
        first(writing.count, lambda: tile.write(writing, thread, buffer, y))
        if ends is not None:
            flat = b.view(OrderBy(Row(target.total, config.unit)))

            def write_ends() -> None:
                first(ends.count, lambda: tile.write_ends(ends, thread, buffer, flat))

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
