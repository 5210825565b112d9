"""What a permutation by squares accesses, counted before it is built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.by_squares.config import (
    SquareConfig,
    pitches_of,
    resident,
    rows_of,
    shares_words,
    storing_ends,
    walks_of,
)
from lego_mlir.kernels.permute.by_words.config import tiled_modes
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.stored_sectors import (
    least_parts,
    least_stored_sectors,
    stored_sectors,
)
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.costs.accesses import OF_SQUARES, Accesses
from lego_mlir.kernels.permute.costs.tiles import tiles_of
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import Side

_ONCE, _LOADED, _DIGIT, _SHIFTED, _CUT, _GROUPED, _ENDS = 20.0, 4.8, 2.1, 9.6, 1.1, 6.0, 12.0
"""Instructions, fitted to what the simulator counts: of a warp for each way over rows; for a load;
more for each row of a square and each mode that the output's rows have beyond one; for a word that
is stored where rows begin anywhere, more for each mode along which tiles overlap, and for one that
is counted from a sector; for a store of ends of rows."""

_END = 21.0
"""Lines that a store of ends of rows takes the time of."""

_WHOLE_ROWS, _SHARED_WORDS, _LARGE, _SECTORS = 0.9, 0.95, 26e6, 1.05
"""By so much of the estimate kernels take whose warps load one row of the input at a time, and
by so much of it those whose threads load each word once: where so many bytes are read and written,
and stores touch so many sectors for each one of a copy's, at most. The first is fitted to kernels
of 471 permutations on an H200, all that bench/results has of more than 20 MB and units of a byte or
two, the second to permute_shared_words.jsonl."""

_SAMPLE = 128
"""Threads whose wavefronts are counted."""


def count_squares(
    problem: PermuteProblem, config: SquareConfig, *, at_least: bool = False
) -> Accesses:
    """Return the accesses of a permutation by squares.

    Args:
        problem: the permutation of units.
        config: its tile.
        at_least: whether they are those that there are at least, which takes less time.
    """
    source, target, reading, writing = walks_of(problem, config)
    modes = tiled_modes(problem.joined(config.joined), config.tile, config.sector)
    rows = reading.requests * config.square
    loads = rows * (1 if source.is_aligned or shares_words(source, reading) else 2)
    takes = writing.requests * (1 if target.is_aligned else 2)
    stores = writing.requests
    lines = loads * _rows_at_once(reading) + stores * _rows_at_once(writing)
    wide = max(1, config.square * config.unit_bytes * WARP_THREADS // BANK_LINE_BYTES)
    put = 1.0 if at_least else put_wavefronts(source, target, reading, config)
    wavefronts = rows * put + takes * wide
    digits = max(len(target.side.run), config.joined) - 1
    cut = sum(mode.is_cut for mode in modes)
    instructions = (reading.warps + writing.warps) * _ONCE
    instructions += rows * _DIGIT * digits + loads * _LOADED
    instructions += stores * ((0.0 if target.is_aligned else _SHIFTED) + _CUT * cut)
    of_step = 0.0 if config.group == 1 else _GROUPED
    instructions += stores * of_step
    ends = None
    if config.sector == 1 and target.ends:
        ends = storing_ends(target, config.threads)
        assert ends is not None
        lines += _END * ends.requests
        wavefronts += ends.requests
        instructions += ends.requests * (_ENDS + 2 * of_step)
    tiles = tiles_of(
        problem, config.tile, config.unit, config.unit_bytes, config.sector, config.joined
    )
    steps, unit_bytes = len(reading.steps), config.unit_bytes
    if not at_least:
        stored = stored_sectors(target, writing, ends, unit_bytes)
    elif tiles.stores_whole_sectors:
        stored = least_parts(target, writing)
    else:
        whole_rows = Side.of(problem.joined(config.joined), config.tile, is_source=False)
        stored = least_stored_sectors(whole_rows, unit_bytes)
    found = tiles.accesses(
        loads + stores,
        wavefronts,
        steps=steps * config.square + len(writing.steps),
        ctas=resident(problem, config),
        threads=config.threads,
        prices=OF_SQUARES,
        stored=stored,
    )
    return replace(
        found,
        part=_part(source, reading, problem.moved_bytes(unit_bytes), found.stored),
        lines=lines / found.warps,
        instructions=instructions / found.warps,
        unaligned=(not source.is_aligned) + (not target.is_aligned),
        addressed=0 if source.is_aligned else steps * config.square,
    )


def _part(source: RowSide, reading: Traversal, moved: int | None, stored: float) -> float:
    """Return by how much of the estimate a kernel takes, by how its warps load rows.

    Args:
        source: the tile in the input.
        reading: how threads go over it.
        moved: bytes that are read and written.
        stored: bytes of the sectors that stores touch, for each byte that is stored.
    """
    if reading.threads[-1] != WARP_THREADS or moved is None or moved < _LARGE or stored > _SECTORS:
        return 1.0
    return _WHOLE_ROWS * (_SHARED_WORDS if shares_words(source, reading) else 1.0)


def _rows_at_once(traversal: Traversal) -> float:
    """Return the rows that a request of a warp accesses, on average."""
    return max(1.0, min(WARP_THREADS, traversal.count) / traversal.threads[-1])


def put_wavefronts(
    source: RowSide, target: RowSide, reading: Traversal, config: SquareConfig
) -> float:
    """Return the wavefronts of a warp that puts a column of its squares into shared memory."""
    import numpy as np

    from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts

    square = config.square
    pitches, _ = pitches_of(source, target, config.pitch)
    threads = np.arange(min(reading.count, _SAMPLE))
    (*rows, down), across = reading.place(threads)
    turn = across // (WARP_THREADS // square) % square
    unit = (across * square + turn) * config.pitch + down * square
    for k, row in zip(rows_of(source, target), rows, strict=True):
        unit = unit + row * pitches[k]
    width = max(BANK_BYTES, config.unit_bytes)
    missing = -len(threads) % WARP_THREADS
    places: Any = np.pad(unit * config.unit_bytes, (0, missing)).reshape(-1, WARP_THREADS)
    active = np.pad(np.ones(len(threads), bool), (0, missing)).reshape(-1, WARP_THREADS)
    return float(np.mean(wavefronts(places, width, active).executed))
