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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.kernels.permute.by_words.config import WordConfig, reading_of, shared_units, sides_of
from lego_mlir.kernels.permute.by_words.cut_tile import CutTile
from lego_mlir.kernels.permute.by_words.last_tile import LastTile
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.tile import WordTile
from lego_mlir.kernels.permute.by_words.whole_tile import WholeTile
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles

Phase: TypeAlias = Callable[[WordTile], None]

_RESIDENT_THREADS = 512
"""Threads for which a multiprocessor has registers at least, and of two CTAs. For as many as it
can hold, which is what the assembler goes for if it is not told, it would spill."""


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
    writing = target.traversal(target.whole, config.threads)
    ends = target.traversal(2 * (word - 1), config.threads) if not target.is_aligned else None
    assert reading is not None
    assert writing is not None
    counts = [count_tiles(m.size, t) for m, t in zip(problem.modes, config.tile, strict=True)]
    rasterization = OrderBy(Row(*counts))
    words = shared_units(target.side, config.pitches, word) // word

    def permute(a: Any, b: Any) -> None:
        thread = lg.thread_id()
        blocks = rasterization.inv(lg.block_id())
        buffer = lg.shared(a.dtype, OrderBy(Row(words * word, config.unit)))
        begins = _begins(problem, config, blocks)
        whole = WholeTile(source, target, config, begins, words)
        skips = [block * t - i for block, t, i in zip(blocks, config.tile, begins, strict=True)]
        x, y = a.view(source.memory(config.unit)), b.view(target.memory(config.unit))
        flat = b.view(OrderBy(Row(target.total, config.unit)))
        out = buffer.view(OrderBy(Row(words, word, config.unit)))

        def work(count: int, special: Any, tile: WordTile, phase: Phase) -> None:
            """Let the first threads do something, in a way of its own in tiles that are special."""

            def each() -> None:
                if special is None:
                    phase(whole)
                    return
                lg.if_(~special)(lambda: phase(whole))
                lg.if_(special)(lambda: phase(tile))

            if count == config.threads:
                each()
            else:
                lg.if_(thread < count)(each)

        last = LastTile(source, target, config, begins, words)
        is_last = _reads_too_far(problem, config, source, blocks)
        work(reading.count, is_last, last, lambda tile: tile.read(reading, thread, x, buffer))
        lg.barrier()
        cut = CutTile(source, target, config, begins, words, skips)
        is_cut = _is_cut(problem, config, blocks)
        work(writing.count, is_cut, cut, lambda tile: tile.write(writing, thread, out, y))
        if ends is not None:
            work(ends.count, is_cut, cut, lambda tile: tile.write_ends(ends, thread, buffer, flat))

    permute.__name__ = name
    return lg.kernel(
        grid=prod(counts),
        block=config.threads,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
        ctas_per_sm=max(2, _RESIDENT_THREADS // config.threads),
    )(permute)


def _begins(problem: PermuteProblem, config: WordConfig, blocks: Sequence[Any]) -> list[Any]:
    """Return where a tile begins along each mode: earlier, if it would go beyond the mode's end."""
    found = []
    for block, mode, tile in zip(blocks, problem.modes, config.tile, strict=True):
        whole, left = divmod(mode.size, tile)
        begin = block * tile
        if left:
            is_cut, _ = OrderBy(Row(2, whole)).inv(block)
            begin = lg.select(is_cut, [begin, mode.size - tile])
        found.append(begin)
    return found


def _is_cut(problem: PermuteProblem, config: WordConfig, blocks: Sequence[Any]) -> Any:
    """Return whether a tile begins earlier than where another one ends; `None` if none does."""
    found: Any = None
    for block, mode, tile in zip(blocks, problem.modes, config.tile, strict=True):
        if mode.size % tile:
            is_cut = block >= mode.size // tile
            found = is_cut if found is None else found | is_cut
    return found


def _reads_too_far(
    problem: PermuteProblem, config: WordConfig, source: RowSide, blocks: Sequence[Any]
) -> Any:
    """Return whether a tile's loads may go beyond the end of memory; `None` if none do.

    All rows load as many words, also those that touch fewer.
    """
    if source.is_aligned:
        return None
    found: Any = None
    for k, (mode, tile) in enumerate(zip(problem.modes, config.tile, strict=True)):
        first = count_tiles(mode.size, tile) - 1
        if k == source.side.run[0]:
            slack = 2 * (config.word - 1)
            first = max(0, mode.size * source.inner - slack) // (tile * source.inner)
        is_last = blocks[k] >= first
        found = is_last if found is None else found & is_last
    return found
