"""What a permutation by gathered words is divided by: a tile, its threads, its pitches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.costs.accesses import resident_ctas
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import Side

_RESIDENT_THREADS = 1024
"""Threads for which a multiprocessor has registers at least."""


@dataclass(frozen=True, slots=True)
class GatherConfig:
    """A tile whose input's rows are copied as they are, and whose output's words are gathered.

    Attributes:
        tile: units of each mode of the problem in units, in its order.
        threads: of a CTA.
        unit: elements that stay together.
        unit_bytes: their bytes.
        chunk: units of an access to the input.
        word: units of an access to the output.
        pitches: units from neighbour to neighbour in shared memory, of each mode.
        lanes: rows of the output that neighbouring threads are on, as `Traversal.lanes`.
        sector: units of a sector, if what a tile stores of a row begins and ends where sectors do;
            1 if it begins where the tile does.
    """

    tile: tuple[int, ...]
    threads: int
    unit: int
    unit_bytes: int
    chunk: int
    word: int
    pitches: tuple[int, ...]
    lanes: tuple[int, int] = (0, 1)
    sector: int = 1


def pitches_of(source: RowSide, more: Mapping[int, int]) -> tuple[int, ...]:
    """Return pitches of the tile in the input's order that equal its strides modulo a chunk.

    So a chunk of shared memory is one of the input, and no two rows have one in common.

    Args:
        source: the tile in the input.
        more: what is added to the pitch of a mode, a multiple of a chunk.
    """
    side, chunk = source.side, source.word
    pitches = [0] * len(side.tile)
    end = 0
    for k in reversed(side.order):
        if k in side.run:
            pitches[k] = side.strides[k]
            end = source.touched * chunk
        else:
            pitches[k] = end + (side.strides[k] - end) % chunk + more.get(k, 0)
            end = pitches[k] * side.tile[k]
    return tuple(pitches)


def shared_units(source: RowSide, pitches: tuple[int, ...]) -> int:
    """Return the units of shared memory of a tile at these pitches, shifted by any phase."""
    last = sum((source.side.tile[k] - 1) * pitches[k] for k in source.side.outer)
    phase = 0 if source.is_aligned else source.word - 1
    return -(-(last + phase) // source.word) * source.word + source.touched * source.word


@lru_cache(maxsize=1 << 6)
def sides_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    threads: int,
    chunk: int,
    word: int,
    sector: int,
) -> tuple[RowSide, RowSide] | None:
    """Return the tile in input and output; `None` if threads cannot keep distances in its rows.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        threads: of a CTA.
        chunk: as of a config.
        word: as of a config.
        sector: as of a config. Rows of the output that begin with sectors are left as they are.
    """
    source = RowSide(Side.of(problem, tile, is_source=True), chunk)
    target: RowSide | None = RowSide(Side.of(problem, tile, is_source=False), word, sector)
    while target is not None and target.advance > 0 and target.whole > 0:
        if _writing(target, threads) is not None:
            first = target.side.run[0]
            if sector > 1 and source.side.run[0] == first:
                source = replace(source, apart=target.advance)
            return source, target
        target = None if sector > 1 else target.shorter
    return None


def _writing(target: RowSide, threads: int) -> Traversal | None:
    """Return how threads go over the words of the output's rows."""
    most = max(target.stored, target.grouped)
    multiple = target.inner // gcd(target.inner, target.word)
    # Tiles that have an end of a row store more of it: by further steps, if these may be taken.
    for words in (target.stored, most):
        found = target.traversal(words, threads, in_digits=True, period=target.period)
        # Threads that are side by side store whole sectors, if rows have any.
        if found and found.threads[-1] < min(words, target.period // target.word):
            continue
        if found and (found.threads[-1] >= most or found.threads[-1] % multiple == 0):
            return replace(found, words=most)
    return None


def storing_ends(target: RowSide, most: int) -> Traversal | None:
    """Return how up to `most` threads go over the units of rows that are in no whole word."""
    return target.traversal(target.ends, most, period=target.period)


@dataclass(frozen=True, slots=True)
class Walks:
    """How the threads of a config go over a tile.

    Attributes:
        source: the tile in the input.
        target: the tile in the output.
        reading: over the chunks of the input's rows.
        writing: over the words of the output's rows.
        ends: over what is left of the output's rows; `None` if nothing is.
    """

    source: RowSide
    target: RowSide
    reading: Traversal
    writing: Traversal
    ends: Traversal | None


@lru_cache(maxsize=1 << 6)
def walks_of(problem: PermuteProblem, config: GatherConfig) -> Walks | None:
    """Return how threads go over a tile; `None` if they cannot.

    Args:
        problem: the permutation of units.
        config: its tile.
    """
    sides = sides_of(problem, config.tile, config.threads, config.chunk, config.word, config.sector)
    if sides is None:
        return None
    source, target = sides
    reading = source.traversal(source.touched, config.threads)
    writing = _writing(target, config.threads)
    ends = storing_ends(target, config.threads) if target.ends else None
    if reading is None or writing is None or (target.ends and ends is None):
        return None
    return Walks(source, target, reading, replace(writing, lanes=config.lanes), ends)


def resident(problem: PermuteProblem, config: GatherConfig) -> int:
    """Return for how many CTAs a multiprocessor has room: what the kernel asks registers for.

    Args:
        problem: the permutation of units.
        config: its tile, one that threads can go over.
    """
    walks = walks_of(problem, config)
    assert walks is not None
    digits = len(walks.target.side.run) - 1
    registers = 32.0 + (2.0 * config.word if digits else 0.0)
    registers += 0.0 if walks.source.is_aligned and walks.target.is_aligned else 6.0
    shared = shared_units(walks.source, config.pitches) * config.unit_bytes
    least = _RESIDENT_THREADS // config.threads
    return int(resident_ctas(config.threads, registers, shared, least))
