"""What a permutation by gathered words accesses, counted before it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig, resident, walks_of
from lego_mlir.kernels.permute.by_words.stored_sectors import (
    least_stored_sectors,
    stored_sectors,
)
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.costs.accesses import OF_GATHERS, Accesses
from lego_mlir.kernels.permute.costs.tiles import tiles_of
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import Side

_ONCE, _COPIED, _DIGIT, _GATHERED, _ENDS = 40.0, 5.0, 8.0, 3.0, 16.0
"""Instructions: of a warp for each way over rows; for a chunk; for each unit of a thread's first
word and each mode that the output's rows have beyond one; for a word, beside two for each unit that
is gathered; for a store of ends of rows."""

_SAMPLE = 128
"""Threads whose wavefronts are counted."""


def count_gathers(
    problem: PermuteProblem, config: GatherConfig, *, at_least: bool = False
) -> Accesses:
    """Return the accesses of a permutation by gathered words.

    Args:
        problem: the permutation of units.
        config: its tile, one that threads can go over.
        at_least: whether they are those that there are at least, which takes less time.
    """
    walks = walks_of(problem, config)
    assert walks is not None
    target, reading, writing = walks.target, walks.reading, walks.writing
    unit_bytes, word = config.unit_bytes, config.word
    registers = word * unit_bytes // BANK_BYTES
    loads = reading.requests
    # Rows that a tile has no end of have fewer words than threads go to.
    stores = writing.requests * min(1.0, target.stored / writing.words)
    take = 1.0 if at_least else take_wavefronts(problem, config, [config.pitches])[0]
    wide = max(1.0, config.chunk * unit_bytes * WARP_THREADS / BANK_LINE_BYTES)
    wavefronts = loads * wide + stores * word * take
    digits = len(target.side.run) - 1
    instructions = (reading.warps + writing.warps) * _ONCE
    instructions += writing.warps * word * _DIGIT * digits
    instructions += loads * _COPIED + stores * (2 * word + _GATHERED)
    ends = 0
    if config.sector == 1 and walks.ends is not None:
        ends = walks.ends.requests
        wavefronts += ends
        instructions += walks.ends.warps * _ONCE + ends * _ENDS
    lines = loads * _rows_at_once(reading) + stores * _rows_at_once(writing) + ends * WARP_THREADS
    tiles = tiles_of(problem, config.tile, config.unit, unit_bytes, config.sector)
    stored = 1.0
    if not at_least:
        by_units = walks.ends if config.sector == 1 else None
        stored = stored_sectors(target, writing, by_units, unit_bytes)
    elif config.sector == 1:
        stored = least_stored_sectors(Side.of(problem, config.tile, is_source=False), unit_bytes)
    found = tiles.accesses(
        loads + stores + ends,
        wavefronts,
        steps=len(reading.steps) + len(writing.steps) * registers + (ends > 0),
        ctas=resident(problem, config),
        threads=config.threads,
        prices=OF_GATHERS,
        stored=stored,
    )
    return replace(
        found,
        # Lanes on several rows may store parts of sectors, whatever tiles begin with.
        stored=max(found.stored, stored),
        lines=lines / found.warps,
        instructions=instructions / found.warps,
        unaligned=int(not target.is_aligned),
    )


def _rows_at_once(traversal: Traversal) -> float:
    """Return the rows that a request of a warp accesses, on average."""
    _, lanes = traversal.lanes
    return max(1.0, lanes, min(WARP_THREADS, traversal.count) / traversal.threads[-1])


def take_wavefronts(
    problem: PermuteProblem, config: GatherConfig, pitches: Sequence[Sequence[int]]
) -> list[float]:
    """Return the wavefronts of a warp that takes a unit of each of its words, for several pitches.

    All steps of a thread are at constant distances: the first one has the conflicts of all.

    Args:
        problem: the permutation of units.
        config: the tile, its threads and lanes.
        pitches: of all modes, several times.
    """
    import numpy as np

    from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts

    walks = walks_of(problem, config)
    assert walks is not None
    target, writing = walks.target, walks.writing
    side, period = target.side, target.period
    threads = np.arange(min(writing.count, _SAMPLE))
    rows, column = writing.place(threads)
    starts = sum(
        (i * side.strides[k] for k, i in zip(side.outer, rows, strict=True)), start=0 * threads
    )
    first = 0 * starts if target.is_aligned and period == config.word else -starts % period
    nth = np.arange(config.word)[:, None]
    if config.word * config.unit_bytes > BANK_BYTES:  # neighbours take the other half first
        nth = (nth + threads % 2 * (config.word // 2)) % config.word
    along = first + column * config.word + nth
    # Beyond the row's end are no units; where they were does not matter much.
    index = np.zeros((len(problem.modes), *along.shape), np.int64)
    run = OrderBy(Row(*(side.tile[k] for k in side.run)))
    places = run.inv(along % target.units)
    for k, i in zip((*side.outer, *side.run), (*rows, *places), strict=True):
        index[k] = i
    missing = [(0, 0), (0, -len(threads) % WARP_THREADS)]
    inside = np.pad(np.ones(along.shape, bool), missing)
    index = np.pad(index, [(0, 0), *missing])
    bytes_at = np.tensordot(np.array(pitches, np.int64), index, 1) * config.unit_bytes
    shape = (len(pitches), -1, WARP_THREADS)
    active = np.broadcast_to(inside, bytes_at.shape).reshape(shape)
    executed = wavefronts(bytes_at.reshape(shape), config.unit_bytes, active).executed
    return [float(n) for n in executed.sum(1) / inside.sum() * WARP_THREADS]
