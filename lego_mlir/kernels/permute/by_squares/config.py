"""What a permutation by squares is divided by: a tile, its threads, its pitches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from lego_mlir.hardware.limits import BANK_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal, traverse
from lego_mlir.kernels.permute.costs.accesses import resident_ctas
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.runs import Side

_RESIDENT_THREADS = 1024
"""Threads for which a multiprocessor has registers at least."""

_LANES, _STEPS = 0.75, 1.2
"""The least part of a warp's lanes that have a word of a row where each loads one word, and how
many times as many steps as otherwise threads then take, at most. Half a warp for each row, or 1.33
times the steps, take longer than two words a lane (bench/results/permute_shared_words.jsonl)."""


@dataclass(frozen=True, slots=True)
class SquareConfig:
    """A tile whose squares are transposed in registers.

    Attributes:
        tile: units of each mode of the problem in units, in its order.
        threads: of a CTA.
        unit: elements that stay together.
        unit_bytes: their bytes.
        square: units of a register, and rows of a square: 1 if a unit has a register's bytes.
        pitch: units from one unit of the input's row to the next in shared memory; a multiple of
            `square`.
        sector: units of a sector, if what a tile stores of a row begins and ends where sectors do;
            1 if it begins where the tile does.
        group: units of a sector, if neighbouring threads store the words of whole sectors; 1 if
            they count words from where a row begins.
        joined: innermost modes of the output that `tile` has as one, as `PermuteProblem.joined`: a
            row of the output is a part of it, which begins anywhere in them.
    """

    tile: tuple[int, ...]
    threads: int
    unit: int
    unit_bytes: int
    square: int
    pitch: int
    sector: int = 1
    group: int = 1
    joined: int = 1


@lru_cache(maxsize=1 << 6)
def sides_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    square: int,
    sector: int,
    group: int = 1,
    joined: int = 1,
) -> tuple[RowSide, RowSide] | None:
    """Return the tile in input and output, by rows that have no mode in common; `None` if none are.

    Of the ways to leave the slowest modes of rows out, it is the one that leaves the longest ones.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        square: as of a config.
        sector: as of a config. Rows of the output that begin with sectors are left as they are.
        group: as of a config.
        joined: as of a config. The input has all of these modes, of which a tile has a part.
    """
    modes = problem.modes
    box = (*tile[:-1], *(m.size for m in modes[-joined:])) if joined > 1 else tile
    source = RowSide(Side.of(problem, box, is_source=True), square)
    whole = Side.of(problem.joined(joined), tile, is_source=False)
    target = RowSide(whole, square, sector, group)
    if joined > 1 and len(whole.run) > 1:
        return None
    targets = [target] if sector > 1 else list(_shorter(target))
    stored = {*range(len(modes) - joined, len(modes))} if joined > 1 else set()
    pairs = [
        (s, t)
        for s, t in product(_shorter(source), targets)
        if not {*s.side.run} & {*t.side.run, *stored}
    ]
    return min(pairs, key=lambda pair: sum(1 / side.units for side in pair), default=None)


def _shorter(side: RowSide | None) -> Iterator[RowSide]:
    while side is not None:
        yield side
        side = side.shorter


def rows_of(source: RowSide, target: RowSide) -> list[int]:
    """Return the modes that are in neither side's rows, slowest first in the input."""
    rows = range(len(target.side.sizes))
    return [k for k in source.side.outer if k in rows and k not in target.side.run]


def lanes_of(source: RowSide) -> int:
    """Return the lanes that load a row of the input, a word each; 0 if some load two words.

    Rows that begin inside of a word have a word more than squares. The lanes of a warp have it from
    one another, if the row has nearly as many words.
    """
    is_warp = WARP_THREADS * _LANES <= source.touched <= WARP_THREADS
    return WARP_THREADS if is_warp and not source.is_aligned else 0


def squares_of(source: RowSide) -> int:
    """Return the most squares along a row of the input, those that are beside the tile, too."""
    return max(lanes_of(source), count_tiles(source.units, source.word))


def loading(source: RowSide, target: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the squares of a tile.

    Its extents are those of the modes in neither side's rows, then the squares along the output's
    row; its words are squares along the input's.
    """
    extents = [source.side.tile[k] for k in rows_of(source, target)]
    extents.append(count_tiles(target.units, source.word))
    found = traverse(
        extents, [1] * len(extents), count_tiles(source.units, source.word), 1, 1, most
    )
    if found is None or not (lanes := lanes_of(source)):
        return found
    shared = traverse(extents, [1] * len(extents), lanes, 1, 1, most)
    is_short = shared is not None and len(shared.steps) <= _STEPS * len(found.steps)
    return shared if is_short else found


def shares_words(source: RowSide, reading: Traversal) -> bool:
    """Return whether threads have the second word of each row of a square from their neighbours.

    Args:
        source: the tile in the input.
        reading: how threads go over it.
    """
    return lanes_of(source) == reading.threads[-1] > 0


def pitches_of(source: RowSide, target: RowSide, pitch: int) -> tuple[tuple[int, ...], int]:
    """Return the pitch of each mode in shared memory, and the units of the whole tile.

    Args:
        source: the tile in the input.
        target: the tile in the output; its rows are side by side.
        pitch: as of a config.
    """
    tile, square = source.side.tile, source.word
    found = [0] * len(tile)
    for side, step in ((target.side, 1), (source.side, pitch)):
        for k in reversed(side.run):
            found[k] = step
            step *= tile[k]
    size = squares_of(source) * square * pitch
    for k in reversed(rows_of(source, target)):
        found[k] = size
        size *= tile[k]
    # A word beyond the last row is taken with it, and shifted out.
    return tuple(found), size + square


def storing(target: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the words that lie in the output's rows.

    They keep the phase in a word, and in a sector if whole sectors are stored.
    """
    return target.traversal(target.grouped, most, period=target.period)


def storing_ends(target: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the units of rows that are in no whole word."""
    return target.traversal(target.ends, most, period=target.period)


@lru_cache(maxsize=1 << 6)
def walks_of(
    problem: PermuteProblem, config: SquareConfig
) -> tuple[RowSide, RowSide, Traversal, Traversal]:
    """Return the tile in input and output, and how threads go over either.

    Args:
        problem: the permutation of units.
        config: its tile, one that threads can go over.
    """
    sides = sides_of(
        problem, config.tile, config.square, config.sector, config.group, config.joined
    )
    assert sides is not None
    source, target = sides
    reading, writing = loading(source, target, config.threads), storing(target, config.threads)
    assert reading is not None
    assert writing is not None
    return source, target, reading, writing


def resident(problem: PermuteProblem, config: SquareConfig) -> int:
    """Return for how many CTAs a multiprocessor has room: what the kernel asks registers for.

    Registers are fitted to what the assembler takes, with some more.

    Args:
        problem: the permutation of units.
        config: its tile.
    """
    source, target, reading, writing = walks_of(problem, config)
    loaded = len(reading.steps) * config.square * max(BANK_BYTES, config.unit_bytes) / BANK_BYTES
    registers = 22.5 + 0.76 * loaded + 0.2 * (len(writing.steps) + config.square)
    registers += (0.0 if source.is_aligned else 12.0) + (0.0 if target.is_aligned else 4.7)
    registers += 2.8 if config.sector > 1 else 0.0
    _, units = pitches_of(source, target, config.pitch)
    least = _RESIDENT_THREADS // config.threads
    return int(resident_ctas(config.threads, registers, units * config.unit_bytes, least))
