"""The tile, the pitches and the threads of a permutation by gathered words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    BANK_LINE_BYTES,
    MAX_ACCESS_BYTES,
    SECTOR_BYTES,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig, pitches_of, sides_of, walks_of
from lego_mlir.kernels.permute.by_gathers.costs import count_gathers, take_wavefronts
from lego_mlir.kernels.permute.by_words.heuristic import ranked_tiles, to_sectors
from lego_mlir.kernels.permute.candidates import Candidate, of_tiles, ranked
from lego_mlir.kernels.permute.costs.accesses import OF_GATHERS, Accesses
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.run_heuristic import tiles_of_runs

_TILES = 6
"""So many tiles are looked at in full, of those that store whole sectors and of the others."""

_TILE_BYTES, _CTAS = 73728, 792
"""The most bytes of a tile, and the CTAs that there are at least, where they have 1 KiB."""

_THREADS = (256, 512)
"""The numbers of threads."""

_WORDS = (4, 8)
"""The bytes of words that are looked at."""

_THREAD_BYTES = (24, 136)
"""Bytes that a thread loads, at least and at most, where the numbers of threads allow."""

_LANES = (2, 4, 8)
"""Rows that neighbouring threads may be on."""

_BETTER, _FEW = 0.95, 1.1
"""Lanes are on several rows where that saves wavefronts, and pitches looked for until these."""


def gather_candidates(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> list[Candidate[GatherConfig]]:
    """Return configs by gathered words, of the tiles that move the least.

    Args:
        problem: the permutation of units.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take, by the alignment of both arrays.
    """
    if unit_bytes >= BANK_BYTES or max_bytes < BANK_BYTES:
        return []
    most, tiles = tiles_of_runs(problem, unit_bytes, _TILE_BYTES, _CTAS)
    classes = [(1, set(tiles))]
    if max_bytes == MAX_ACCESS_BYTES:
        sector = SECTOR_BYTES // unit_bytes
        overlapping = partial(to_sectors, problem, sector=sector, most=most, is_any=True)
        classes.append((sector, {t for tile in tiles for t in overlapping(tile)}))

    def work_out(config: GatherConfig) -> tuple[GatherConfig, Accesses]:
        found = _without_conflicts(problem, config)
        return found, count_gathers(problem, found)

    found: list[Candidate[GatherConfig]] = []
    for units, each in classes:
        in_order = ranked_tiles(problem, each, units, unit_bytes, _threads, OF_GATHERS)
        configs = partial(
            _rough_configs,
            problem,
            unit=unit,
            unit_bytes=unit_bytes,
            max_bytes=max_bytes,
            sector=units,
        )
        found += of_tiles(in_order, configs, partial(count_gathers, problem), work_out, _TILES)
    return found


def rank_gathers(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> list[tuple[GatherConfig, Accesses]]:
    """Return the configs by gathered words and what they access, the best first."""
    return ranked(gather_candidates(problem, unit, unit_bytes, max_bytes))


def configs_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    max_bytes: int,
    sector: int,
) -> Iterator[GatherConfig]:
    """Yield the configs of a tile by the pitches and lanes that meet least in banks.

    Arguments as of `_rough_configs`.
    """
    for config in _rough_configs(problem, tile, unit, unit_bytes, max_bytes, sector):
        yield _without_conflicts(problem, config)


def _rough_configs(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    max_bytes: int,
    sector: int,
) -> Iterator[GatherConfig]:
    """Yield the configs of a tile by any pitches and lanes, of each number of threads.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take.
        sector: as of the config.
    """
    chunk = max_bytes // unit_bytes
    least, most = _THREAD_BYTES
    size = prod(tile) * unit_bytes
    for threads, word_bytes in product(_THREADS, _WORDS):
        is_fitting = least * threads <= size <= most * threads
        if not is_fitting and threads != _threads(problem, [tile], unit_bytes)[0]:
            continue
        word = word_bytes // unit_bytes
        sides = sides_of(problem, tile, threads, chunk, word, sector)
        if word_bytes > max_bytes or sides is None:
            continue
        pitches = pitches_of(sides[0], {})
        config = GatherConfig(tile, threads, unit, unit_bytes, chunk, word, pitches, sector=sector)
        if walks_of(problem, config) is not None:
            yield config


def _without_conflicts(problem: PermuteProblem, config: GatherConfig) -> GatherConfig:
    """Return the config with the pitches and lanes that meet least in banks."""
    walks = walks_of(problem, config)
    assert walks is not None
    source, writing = walks.source, walks.writing
    # What a warp stores of a row is a sector at least.
    most = WARP_THREADS * config.word * config.unit_bytes // SECTOR_BYTES
    together = [n for n in _LANES if n <= most]
    lanes = [(k, n) for n in together for k, m in enumerate(writing.threads[:-1]) if m % n == 0]
    steps = max(1, BANK_LINE_BYTES // (config.chunk * config.unit_bytes))
    best, least = config, float("inf")
    for each in [(0, 1), *lanes]:
        more: dict[int, int] = {}
        tried = replace(config, lanes=each)
        for k in reversed(source.side.outer):
            pitches = [pitches_of(source, {**more, k: n * config.chunk}) for n in range(steps)]
            counts = take_wavefronts(problem, tried, pitches)
            n = counts.index(min(counts))
            more[k] = n * config.chunk
            if counts[n] < least * _BETTER:
                best, least = replace(tried, pitches=pitches[n]), counts[n]
            if least <= _FEW:
                return best
        if not source.side.outer:
            (count,) = take_wavefronts(problem, tried, [config.pitches])
            if count < least * _BETTER:
                best, least = tried, count
    return best


def _threads(problem: PermuteProblem, tiles: Sequence[tuple[int, ...]], unit_bytes: int) -> Any:
    """Return the fewest threads of a CTA with each tile that do not load too much each."""
    import numpy as np

    sizes = np.prod(tiles, axis=-1) * unit_bytes
    limits = [n * _THREAD_BYTES[1] for n in _THREADS[:-1]]
    return np.array(_THREADS)[np.searchsorted(limits, sizes)]
