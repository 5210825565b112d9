"""The tile and the threads of a permutation by squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from lego_mlir.hardware.limits import BANK_BYTES, MAX_ACCESS_BYTES, SECTOR_BYTES
from lego_mlir.kernels.permute.accesses import OF_SQUARES, Accesses
from lego_mlir.kernels.permute.by_squares.config import (
    SquareConfig,
    loading,
    sides_of,
    storing,
    storing_ends,
)
from lego_mlir.kernels.permute.by_squares.costs import count_squares
from lego_mlir.kernels.permute.by_words.config import is_grouped
from lego_mlir.kernels.permute.by_words.heuristic import ranked_tiles, to_sectors
from lego_mlir.kernels.permute.candidates import Candidate, of_tiles, ranked
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.run_heuristic import tiles_of_runs

_TILES = 6
"""So many tiles are looked at in full, of those that store whole sectors and of the others."""

_TILE_BYTES, _CTAS = 49152, 132
"""The most bytes of a tile, and the CTAs that there are at least, where they have 1 KiB."""

_THREADS = (128, 256, 512)
"""The numbers of threads."""

_THREAD_BYTES = (24, 136)
"""Bytes that a thread loads, at least and at most, where the numbers of threads allow."""


def square_candidates(
    problem: PermuteProblem,
    unit: int,
    unit_bytes: int,
    max_bytes: int,
    *,
    whole_words: bool = False,
) -> list[Candidate[SquareConfig]]:
    """Return configs by squares, of the tiles that move the least.

    Units of 8 bytes have none: they were as fast or faster by words, on an H200.

    Args:
        problem: the permutation of units.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take, by the alignment of both arrays.
        whole_words: whether some are of tiles that store whole words: estimates do not tell well
            where these are the fastest.
    """
    if problem.is_copy or unit_bytes > BANK_BYTES or max_bytes < BANK_BYTES:
        return []
    most, tiles = tiles_of_runs(problem, unit_bytes, _TILE_BYTES, _CTAS)
    classes = [(1, set(tiles))]
    sector = SECTOR_BYTES // unit_bytes
    group = sector if max_bytes == MAX_ACCESS_BYTES else 1
    whole = {sector} if max_bytes == MAX_ACCESS_BYTES else set()
    whole |= {BANK_BYTES // unit_bytes} if whole_words else set()
    for units in sorted(whole - {1}):
        overlapping = {t for tile in tiles for t in to_sectors(problem, tile, units, most)}
        classes.append((units, overlapping))

    def work_out(config: SquareConfig) -> tuple[SquareConfig, Accesses]:
        return config, count_squares(problem, config)

    found: list[Candidate[SquareConfig]] = []
    for units, each in classes:
        in_order = ranked_tiles(problem, each, units, unit_bytes, _threads, OF_SQUARES)
        configs = partial(
            configs_of, problem, unit=unit, unit_bytes=unit_bytes, sector=units, group=group
        )
        found += of_tiles(in_order, configs, partial(count_squares, problem), work_out, _TILES)
    return found


def rank_squares(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> list[tuple[SquareConfig, Accesses]]:
    """Return the configs by squares, and what they access, the best first; arguments as above."""
    return ranked(square_candidates(problem, unit, unit_bytes, max_bytes, whole_words=True))


def configs_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    sector: int,
    group: int = 1,
) -> Iterator[SquareConfig]:
    """Yield the configs of a tile, of each number of threads that serves it.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        sector: as of the config.
        group: of further configs; 1 if there are none.
    """
    square = max(1, BANK_BYTES // unit_bytes)
    sides = sides_of(problem, tile, square, sector)
    if sides is None:
        return
    source, target = sides
    if min(source.units, target.units) < square or target.advance < 1:
        return
    # Words of a row are apart by an odd number of words, so that lanes do not meet in banks.
    pitch = (count_tiles(target.units, square) | 1) * square
    least, most = _THREAD_BYTES
    size = prod(tile) * unit_bytes
    for threads in _THREADS:
        is_fitting = least * threads <= size <= most * threads
        if not is_fitting and threads != _threads(problem, [tile], unit_bytes)[0]:
            continue
        ways = [loading(source, target, threads), storing(target, threads)]
        if square > 1 and not target.is_aligned:
            ways.append(storing_ends(target, threads))
        if None not in ways:
            config = SquareConfig(tile, threads, unit, unit_bytes, square, pitch, sector)
            yield config
            if is_grouped(replace(target, group=group), threads):
                yield replace(config, group=group)


def _threads(problem: PermuteProblem, tiles: Sequence[tuple[int, ...]], unit_bytes: int) -> Any:
    """Return the fewest threads of a CTA with each tile that do not load too much each."""
    import numpy as np

    sizes = np.prod(tiles, axis=-1) * unit_bytes
    limits = [n * _THREAD_BYTES[1] for n in _THREADS[:-1]]
    return np.array(_THREADS)[np.searchsorted(limits, sizes)]
