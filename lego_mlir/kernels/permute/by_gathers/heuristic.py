"""The tile, the pitches and the threads of a permutation by gathered words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import gcd, prod
from typing import Any

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    BANK_LINE_BYTES,
    MAX_ACCESS_BYTES,
    SECTOR_BYTES,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.accesses import OF_GATHERS, Accesses
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig, pitches_of, sides_of, walks_of
from lego_mlir.kernels.permute.by_gathers.costs import count_gathers, take_wavefronts
from lego_mlir.kernels.permute.by_words.heuristic import ranked_tiles
from lego_mlir.kernels.permute.candidates import Candidate, ranked
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.run_heuristic import tiles_of_runs
from lego_mlir.kernels.permute.runs import Side

_TILES = 4
"""So many tiles are looked at in full, of those that store whole sectors and of the others."""

_TILE_BYTES, _CTAS = 73728, 792
"""The most bytes of a tile, and the CTAs that there are at least, where they have 1 KiB."""

_REREAD = 2.0
"""Tiles that store whole sectors overlap by less than what they are apart, times this less 1."""

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
        overlapping = {t for tile in tiles for t in _to_sectors(problem, tile, sector, most)}
        classes.append((sector, overlapping))

    def work_out(config: GatherConfig) -> tuple[GatherConfig, Accesses]:
        found = _without_conflicts(problem, config)
        return found, count_gathers(problem, found)

    found = []
    for sector, each in classes:
        looked_at = 0
        for tile in ranked_tiles(problem, each, sector, unit_bytes, _threads, OF_GATHERS):
            configs = list(_rough_configs(problem, tile, unit, unit_bytes, max_bytes, sector))
            for config in configs:
                least = count_gathers(problem, config, at_least=True).cycles
                order = (tile, config.threads, config.word, config.sector)
                found.append(Candidate(least, order, partial(work_out, config)))
            looked_at += bool(configs)
            if looked_at == _TILES:
                break
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


def _to_sectors(
    problem: PermuteProblem, tile: tuple[int, ...], sector: int, most: int
) -> Iterator[tuple[int, ...]]:
    """Yield tiles like one that store whole sectors of the output's rows.

    Args:
        problem: the permutation of units.
        tile: one that stores its own runs.
        sector: units of a sector.
        most: units of a tile.
    """
    target = Side.of(problem, tile, is_source=False)
    first, inner = target.run[0], prod(tile[k] for k in target.run[1:])
    overlap, grain = count_tiles(sector - 1, inner), sector // gcd(sector, inner)
    whole = {count_tiles(tile[first], grain) * grain, (tile[first] - overlap) // grain * grain}
    for advance in {tile[first], tile[first] - overlap, *whole}:
        size = advance + overlap
        found = (*tile[:first], size, *tile[first + 1 :])
        if size < min(problem.modes[first].size, _REREAD * advance) and prod(found) <= most:
            yield found


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
