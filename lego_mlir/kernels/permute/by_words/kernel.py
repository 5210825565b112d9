"""Permutations by tiles of whole runs, in words wherever runs begin.

A CTA takes a tile that has a long run of the input and a long run of the output, as in `runs`. Here
both memories are accessed by words only, also where a run begins or ends inside of a word: rows of
bytes whose pitch is odd are neither loaded nor stored byte by byte.

- The input is loaded in the words that a run touches. What is loaded too much at its ends is left
  out: a thread knows which elements of its words are in the run, and steps to runs of the same
  phase only (`traversal`).
- In shared memory the tile is in the output's order, at pitches that equal the output's strides
  modulo a word, and shifted by the phase of the tile. So a word of shared memory is a word of the
  output, whatever the sizes are. Apart from this the pitches are free, and are such that lanes do
  not meet in banks.
- Words that are whole are stored as words. The ends of runs are stored after them, by threads that
  have nothing else to do: elements of many runs at a time.
- A store of a warp moves each sector that it has a part of. So neighbouring threads may store the
  words of whole sectors, wherever runs begin, and what a run has of a sector is stored at once: by
  words if runs begin with words, unit by unit if they do not.
- A sector of device memory that two CTAs store a part of each costs far more than its bytes. So
  tiles may overlap along a row of the output by less than a sector: what each row needs up to the
  first sector that the next tile stores. Then only ends of rows are stored by parts of sectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from operator import and_, or_
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, RegP, Row
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.frontend.dtypes import bytes_of
from lego_mlir.kernels.permute.by_words.config import (
    WordConfig,
    reading_of,
    resident,
    shared_units,
    sides_of,
    tiled_modes,
)
from lego_mlir.kernels.permute.by_words.cut_tile import CutTile
from lego_mlir.kernels.permute.by_words.last_tile import LastTile
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.tile_kernel import by_first, tile_kernel
from lego_mlir.kernels.permute.by_words.tiled_mode import TiledMode
from lego_mlir.kernels.permute.by_words.whole_tile import WholeTile
from lego_mlir.kernels.permute.dependence import complete_tile
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import raster_order


def word_permutation(
    name: str,
    problem: PermuteProblem,
    config: WordConfig,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation by words of tiles of whole runs.

    Args:
        name: name of the kernel.
        problem: the permutation of units.
        config: its tile.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    source, target = sides_of(problem, config)
    word = config.word
    reading = reading_of(source, config)
    writing = target.traversal(target.stored, config.threads)
    cut_writing = target.traversal(target.grouped, config.threads)
    ends = target.traversal(target.ends, config.threads) if target.ends else None
    assert reading is not None
    assert writing is not None
    assert cut_writing is not None
    modes = tiled_modes(problem, config.tile, config.sector)
    along = target.side.run[0]
    counts = [mode.count for mode in modes]
    unit_bytes = config.unit * bytes_of(a.dtype)
    rasterization = OrderBy(RegP(counts, raster_order(problem, config.tile, counts, unit_bytes)))
    words = shared_units(target.side, config.pitches, word) // word
    tile_bytes = prod(config.tile) * unit_bytes

    def permute(a: Any, b: Any) -> None:
        thread = lg.thread_id()
        blocks = rasterization.inv(lg.block_id())
        buffer = lg.shared(a.dtype, OrderBy(Row(words * word, config.unit)))
        begins = [mode.begin(block) for mode, block in zip(modes, blocks, strict=True)]
        whole = WholeTile(source, target, config, begins, words)
        skips = [mode.skipped(block) for mode, block in zip(modes, blocks, strict=True)]
        x, y = a.view(source.memory(config.unit)), b.view(target.memory(config.unit))
        flat = b.view(OrderBy(Row(target.total, config.unit)))
        out = buffer.view(OrderBy(Row(words, word, config.unit)))

        first = partial(by_first, thread, config.threads)
        last = LastTile(source, target, config, begins, words)
        is_last = _reads_too_far(modes, config, source, blocks)
        first(
            reading.count,
            lambda: _either(
                is_last,
                lambda: whole.read(reading, thread, x, buffer),
                lambda: last.read(reading, thread, x, buffer),
            ),
        )
        complete_tile(tile_bytes)
        is_begin, is_end = blocks[along] < 1, blocks[along] >= modes[along].count - 1
        cut = CutTile(source, target, config, begins, words, skips, is_begin, is_end)
        is_cut = _is_cut(modes, blocks)
        if config.sector > 1:
            ends_of_rows = is_begin | is_end
            is_cut = ends_of_rows if is_cut is None else is_cut | ends_of_rows

        def write() -> None:
            first(writing.count, lambda: whole.write(writing, thread, out, y))
            if ends is not None and config.sector == 1:
                first(ends.count, lambda: whole.write_ends(ends, thread, buffer, flat))

        def write_cut() -> None:
            first(cut_writing.count, lambda: cut.write(cut_writing, thread, out, y))
            if ends is not None:
                first(ends.count, lambda: cut.write_ends(ends, thread, buffer, flat))

        _either(is_cut, write, write_cut)

    return tile_kernel(
        permute,
        name,
        problem,
        ctas=rasterization.size,
        threads=config.threads,
        ctas_per_sm=resident(problem, config, unit_bytes),
        unit_bytes=unit_bytes,
        tile_bytes=tile_bytes,
        a=a,
        b=b,
        reference=reference,
    )


def _either(special: Any, usual: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Do the one in tiles that are not special, the other in those that are; `None` if none is."""
    if special is None:
        usual()
        return
    lg.if_(~special)(usual)
    lg.if_(special)(otherwise)


def _is_cut(modes: Sequence[TiledMode], blocks: Sequence[Any]) -> Any:
    """Return whether a tile begins earlier than where another one ends; `None` if none does."""
    cut = [block >= mode.regular for mode, block in zip(modes, blocks, strict=True) if mode.is_cut]
    return reduce(or_, cut) if cut else None


def _reads_too_far(
    modes: Sequence[TiledMode], config: WordConfig, source: RowSide, blocks: Sequence[Any]
) -> Any:
    """Return whether a tile's loads may go beyond the end of memory; `None` if none do.

    All rows load as many words, also those that touch fewer.
    """
    if source.is_aligned:
        return None
    found = []
    for k, (mode, block) in enumerate(zip(modes, blocks, strict=True)):
        first = mode.count - 1
        if k == source.side.run[0]:
            left = (mode.size - mode.tile) * source.inner - 2 * (config.word - 1)
            first = max(0, left // (mode.advance * source.inner) + 1)
        found.append(block >= first)
    return reduce(and_, found)
