"""The tile and the threads of a permutation by squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import gcd, prod
from typing import Any

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    HALF_LINE_BYTES,
    MAX_ACCESS_BYTES,
    SECTOR_BYTES,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.by_squares.config import (
    SquareConfig,
    lanes_of,
    loading,
    sides_of,
    storing,
    storing_ends,
)
from lego_mlir.kernels.permute.by_squares.costs import count_squares
from lego_mlir.kernels.permute.by_words.config import is_grouped
from lego_mlir.kernels.permute.by_words.heuristic import (
    REREAD,
    is_small,
    ranked_tiles,
    to_sectors,
)
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.candidates import Candidate, of_tiles, ranked
from lego_mlir.kernels.permute.costs.accesses import OF_SQUARES, Accesses
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.run_heuristic import tiles_of_runs
from lego_mlir.kernels.permute.runs import Side

_TILES = 6
"""So many tiles are looked at in full, of those that store whole sectors and of the others."""

_TILE_BYTES, _CTAS = 49152, 132
"""The most bytes of a tile, and the CTAs that there are at least, where they have 1 KiB."""

_NARROWER = 0.9
"""Tiles are not made narrower than so much of what they were."""

_THREADS = (128, 256, 512)
"""The numbers of threads."""

_JOINED_THREADS = 256
"""Those of tiles of joined modes: twice as many took 1.09 times as long for narrow elements, of 5
permutations on an H200, and half as many 1.06 times."""

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
    classes = [(1, 1, set(tiles))]
    sector = SECTOR_BYTES // unit_bytes
    group = sector if max_bytes == MAX_ACCESS_BYTES else 1
    fewest, among = 2, tiles
    if is_small(problem, unit_bytes):
        fewest, among = 1, _with_long_rows(problem, tiles, unit_bytes)
    whole = {sector} if max_bytes == MAX_ACCESS_BYTES else set()
    whole |= {BANK_BYTES // unit_bytes} if whole_words else set()
    for units in sorted(whole - {1}):
        boxes = [tile for tile in among if not _shares_a_mode(problem, tile, fewest)]
        overlapping = {t for tile in boxes for t in to_sectors(problem, tile, units, most)}
        classes.append((units, 1, overlapping))
    return _candidates(problem, unit, unit_bytes, classes, group)


def joined_candidates(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> list[Candidate[SquareConfig]]:
    """Return configs by squares of tiles that begin anywhere in several modes of the output.

    They store whole sectors. Tensors of few tiles have none. Arguments as of `square_candidates`.
    """
    if problem.is_copy or unit_bytes > BANK_BYTES or max_bytes < MAX_ACCESS_BYTES:
        return []
    if is_small(problem, unit_bytes):
        return []
    most, tiles = tiles_of_runs(problem, unit_bytes, _TILE_BYTES, _CTAS)
    sector = SECTOR_BYTES // unit_bytes
    long = _with_long_rows(problem, tiles, unit_bytes)
    classes = [(sector, *each) for each in joined_tiles(problem, long, sector, most).items()]
    return _candidates(problem, unit, unit_bytes, classes, 1)


def _with_long_rows(
    problem: PermuteProblem, tiles: Sequence[tuple[int, ...]], unit_bytes: int
) -> list[tuple[int, ...]]:
    """Return the tiles whose rows of the input have half a line: of others lines are read again."""
    least = HALF_LINE_BYTES // unit_bytes
    return [t for t in tiles if Side.of(problem, t, is_source=True).extents[-1] >= least]


def _shares_a_mode(problem: PermuteProblem, tile: tuple[int, ...], fewest: int) -> bool:
    """Return whether the slowest mode of the output's rows is the input's, too.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        fewest: modes of a row of the output at least, for which it matters.
    """
    source, target = (Side.of(problem, tile, is_source=s).run for s in (True, False))
    return source[0] == target[0] and len(target) >= fewest


def _candidates(
    problem: PermuteProblem,
    unit: int,
    unit_bytes: int,
    classes: Sequence[tuple[int, int, set[tuple[int, ...]]]],
    group: int,
) -> list[Candidate[SquareConfig]]:
    """Return configs of the best tiles of each class, that have one `sector` and one `joined`."""

    def work_out(config: SquareConfig) -> tuple[SquareConfig, Accesses]:
        return config, count_squares(problem, config)

    found: list[Candidate[SquareConfig]] = []
    square = max(1, BANK_BYTES // unit_bytes)
    for units, joined, wider in classes:
        each = {_narrowed(problem, tile, square) for tile in wider} if joined == 1 else wider
        in_order = ranked_tiles(problem, each, units, unit_bytes, _threads, OF_SQUARES, joined)
        configs = partial(
            configs_of,
            problem,
            unit=unit,
            unit_bytes=unit_bytes,
            sector=units,
            group=group,
            joined=joined,
        )
        found += of_tiles(in_order, configs, partial(count_squares, problem), work_out, _TILES)
    return found


def joined_tiles(
    problem: PermuteProblem, tiles: Sequence[tuple[int, ...]], sector: int, most: int
) -> dict[int, set[tuple[int, ...]]]:
    """Return tiles that store whole sectors of rows of joined modes, by how many these are.

    They join as many modes as there are inside of those that a tile has more of, or that it reads
    rows along.

    Args:
        problem: the permutation of units.
        tiles: tiles that store their own runs.
        sector: units of a sector.
        most: units of a tile.
    """
    found: dict[int, set[tuple[int, ...]]] = {}
    last, modes = len(problem.modes) - 1, problem.modes
    for tile in tiles:
        run = Side.of(problem, tile, is_source=False).run
        rows = [k for k in range(run[0]) if tile[k] > 1 or modes[k] is problem.read]
        joined = last - max(rows, default=-1)
        if joined < 2:
            continue
        outer, units = tile[: len(tile) - joined], prod(tile[k] for k in run)
        whole = prod(mode.size for mode in modes[-joined:])
        overlap = sector - gcd(sector, whole)  # rows begin at multiples of that
        for advance in {units // sector * sector, -(-units // sector) * sector}:
            size = advance + overlap
            if size < min(whole, REREAD * advance) and prod(outer) * size <= most:
                found.setdefault(joined, set()).add((*outer, size))
    return found


def rank_squares(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> list[tuple[SquareConfig, Accesses]]:
    """Return the configs by squares, and what they access, the best first; arguments as above."""
    found = square_candidates(problem, unit, unit_bytes, max_bytes, whole_words=True)
    return ranked([*found, *joined_candidates(problem, unit, unit_bytes, max_bytes)])


def configs_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    sector: int,
    group: int = 1,
    joined: int = 1,
) -> Iterator[SquareConfig]:
    """Yield the configs of a tile, of each number of threads that serves it.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        sector: as of the config.
        group: of further configs; 1 if there are none.
        joined: as of the config.
    """
    square = max(1, BANK_BYTES // unit_bytes)
    sides = sides_of(problem, tile, square, sector, joined=joined)
    if sides is None:
        return
    source, target = sides
    if min(source.units, target.units) < square or target.advance < 1:
        return
    # Words of a row are apart by an odd number of words, so that lanes do not meet in banks.
    pitch = (count_tiles(target.units, square) | 1) * square
    least, most = _THREAD_BYTES
    size = prod(tile) * unit_bytes
    if joined > 1:
        numbers = [_JOINED_THREADS] if size <= most * _JOINED_THREADS else []
    else:
        usual = _threads(problem, [tile], unit_bytes)[0]
        numbers = [n for n in _THREADS if n == usual or least * n <= size <= most * n]
    for threads in numbers:
        ways = [loading(source, target, threads), storing(target, threads)]
        if square > 1 and not target.is_aligned:
            ways.append(storing_ends(target, threads))
        if None not in ways:
            config = SquareConfig(
                tile, threads, unit, unit_bytes, square, pitch, sector, joined=joined
            )
            yield config
            if is_grouped(replace(target, group=group), threads):
                yield replace(config, group=group)


def _narrowed(problem: PermuteProblem, tile: tuple[int, ...], square: int) -> tuple[int, ...]:
    """Return a tile that is a little narrower along the input, so that lanes load a word each.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        square: as of the config.
    """
    source, target = (Side.of(problem, tile, is_source=s) for s in (True, False))
    rows, first = RowSide(source, square), source.run[0]
    if rows.is_aligned or lanes_of(rows) or first in target.run:
        return tile
    most = WARP_THREADS * square - (square - 1)
    # Tiles that begin at multiples of squares have their rows' phases in common.
    steps = most // square * square if rows.inner == 1 else most // rows.inner
    if not _NARROWER * rows.units <= steps * rows.inner <= rows.units:
        return tile
    return (*tile[:first], steps, *tile[first + 1 :])


def _threads(problem: PermuteProblem, tiles: Sequence[tuple[int, ...]], unit_bytes: int) -> Any:
    """Return the fewest threads of a CTA with each tile that do not load too much each."""
    import numpy as np

    sizes = np.prod(tiles, axis=-1) * unit_bytes
    limits = [n * _THREAD_BYTES[1] for n in _THREADS[:-1]]
    return np.array(_THREADS)[np.searchsorted(limits, sizes)]
