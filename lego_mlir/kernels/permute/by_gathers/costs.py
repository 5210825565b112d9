"""What a permutation by gathers accesses, counted before it is built."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    BANK_LINE_BYTES,
    SECTOR_BYTES,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.accesses import OF_GATHERS, Accesses, ctas_at_a_time
from lego_mlir.kernels.permute.by_gathers.config import (
    GatherConfig,
    loading,
    shared_units,
    sides_of,
    storing_ends,
    writing_of,
)
from lego_mlir.kernels.permute.by_gathers.pitches import Takes
from lego_mlir.kernels.permute.by_words.config import tiled_modes
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.tiles import Tiles

_ONCE, _UNIT, _DIGIT, _LOADED, _TAKEN, _STORED, _CUT = 30.0, 18.0, 6.0, 3.0, 1.5, 16.0, 1.0
"""Instructions: of a thread for each way over rows; for each unit of its word, and more for each
mode that the unit's place is divided by; for a word that is loaded; for a unit that is taken from
shared memory; for a word that is stored, and more for each mode along which tiles overlap."""

_MORE_REGISTERS = 12
"""Registers of a thread besides those that a thread of any permutation has."""


def count_gathers(
    problem: PermuteProblem, config: GatherConfig, takes: float | None = None
) -> Accesses:
    """Return the accesses of a permutation by gathers.

    Args:
        problem: the permutation of units.
        config: its tile.
        takes: wavefronts of a warp's worth of units that are taken from shared memory, if they are
            known.
    """
    source, target = sides_of(problem, config)
    reading, writing = loading(source, config.threads), writing_of(target, config)
    assert reading is not None
    assert writing is not None
    loads, stores = reading.requests, writing.requests
    lines = loads * _lines(source, reading, 1, config.unit_bytes)
    lines += stores * _lines(target, writing, target.period, config.unit_bytes)
    if takes is None:
        (takes,) = Takes.of(config, target, writing).wavefronts([config.pitches])
    wide = max(1, config.load_bytes * WARP_THREADS // BANK_LINE_BYTES)
    wavefronts = prod(config.tile) / WARP_THREADS * takes + loads * wide
    modes = tiled_modes(problem, config.tile, config.sector)
    cut = sum(mode.is_cut for mode in modes)
    digits = len(target.side.run) - 1
    instructions = (reading.warps + writing.warps) * _ONCE
    instructions += writing.warps * config.word * (_UNIT + _DIGIT * digits)
    instructions += loads * _LOADED
    instructions += stores * (_STORED + _CUT * cut + _TAKEN * config.word)
    if config.sector == 1 and not target.is_aligned and config.word > 1:
        ends = storing_ends(target, config.threads)
        assert ends is not None
        lines += 4 * ends.requests
        wavefronts += ends.requests
        instructions += ends.warps * _ONCE + ends.requests * (_TAKEN + _STORED)
    tiles = Tiles(problem, config.tile, config.unit, config.unit_bytes, tuple(modes), config.sector)
    found = tiles.accesses(
        loads + stores,
        wavefronts,
        steps=prod(writing.counts) * config.word,
        ctas=ctas_at_a_time(
            config.threads,
            _MORE_REGISTERS * BANK_BYTES,
            shared_units(source.side, config.pitches, config.load) * config.unit_bytes,
        ),
        apart=tiles.apart,
        prices=OF_GATHERS,
    )
    rows = prod(config.tile[k] for k in source.side.outer)
    ends_apart = sum((config.tile[k] - 1) * source.side.strides[k] for k in source.side.outer)
    return replace(
        found,
        stride=ends_apart / max(1, rows - 1) * config.unit_bytes,
        lines=lines / found.warps,
        instructions=instructions / found.warps,
    )


@lru_cache(maxsize=1 << 10)
def _lines(side: RowSide, traversal: Traversal, period: int, unit_bytes: int) -> float:
    """Return the lines of global memory that a request of a warp touches, on average.

    Args:
        side: the tile in the memory.
        traversal: how threads go over its rows.
        period: units that each row's first word begins at a multiple of.
        unit_bytes: bytes of a unit.
    """
    import numpy as np

    threads = np.arange(min(traversal.count, _SAMPLE))
    rows, column = traversal.place(threads)
    strides = [side.side.strides[k] for k in side.side.outer]
    start = sum((i * stride for i, stride in zip(rows, strides, strict=True)), start=0 * threads)
    ahead = 0 if side.is_aligned else -start % period
    place = (start + ahead + column * side.word) * unit_bytes
    begins = np.arange(1 if side.is_aligned else 4) * SECTOR_BYTES
    ends = np.array([0, side.word * unit_bytes - 1])
    lines = (place + begins[:, None, None] + ends[:, None]) // BANK_LINE_BYTES
    warps = [lines[..., n : n + WARP_THREADS] for n in range(0, len(threads), WARP_THREADS)]
    return sum(len(set(each)) for w in warps for each in w.reshape(len(begins), -1).tolist()) / (
        len(warps) * len(begins)
    )


_SAMPLE = 128
"""Threads whose lines are counted."""
