"""The tile, the words and the threads of a permutation by gathers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

from lego_mlir.hardware.limits import (
    MAX_ACCESS_BYTES,
    SECTOR_BYTES,
)
from lego_mlir.kernels.permute.accesses import OF_GATHERS, Accesses
from lego_mlir.kernels.permute.by_gathers.config import (
    GatherConfig,
    loading,
    sides_of,
    storing,
    storing_ends,
)
from lego_mlir.kernels.permute.by_gathers.costs import count_gathers
from lego_mlir.kernels.permute.by_gathers.pitches import Pitches, without_conflicts
from lego_mlir.kernels.permute.by_words.heuristic import is_small, ranked_tiles, to_sectors
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.run_heuristic import tiles_of_runs
from lego_mlir.kernels.permute.runs import Side

_LOADS, _WORDS = (16, 8, 4), (4, 8)
"""The bytes of accesses to input and output that are looked at."""

_TILES = 2
"""So many tiles are looked at in full, of those that store whole sectors and of the others: those
that move the least, of which threads can take words."""

_TILE_BYTES, _CTAS = 49152, 132
"""The most bytes of a tile, and the CTAs that there are at least, where they have 1 KiB."""

_THREADS = (64, 128, 256, 512)
"""The numbers of threads."""

_THREAD_BYTES = 128
"""Bytes that a thread stores, at most where there may be more threads."""

_FEW_BYTES = 64
"""Bytes that a thread stores, at most, of a small tensor."""


def choose_gathers(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> tuple[GatherConfig, Accesses]:
    """Return the config by gathers, and what it accesses.

    Args:
        problem: the permutation of units.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take, by the alignment of both arrays.
    """
    most, tiles = tiles_of_runs(problem, unit_bytes, _TILE_BYTES, _CTAS)
    classes = [(1, ranked_tiles(problem, tiles, 1, unit_bytes, _threads, OF_GATHERS))]
    if max_bytes == MAX_ACCESS_BYTES:
        sector = SECTOR_BYTES // unit_bytes
        overlapping = {t for tile in tiles for t in to_sectors(problem, tile, sector, most)}
        classes.append(
            (sector, ranked_tiles(problem, overlapping, sector, unit_bytes, _threads, OF_GATHERS))
        )
    loads, words = (
        sorted({max(1, min(n, max_bytes) // unit_bytes) for n in each}) for each in (_LOADS, _WORDS)
    )
    found: list[GatherConfig] = []
    # Any tile can be moved unit by unit.
    for choices in (list(product(loads, words)), [(1, 1)]):
        for sector, ranked in classes:
            looked_at = 0
            for tile in ranked:
                configs = [
                    config_of(problem, tile, unit, unit_bytes, load, word, sector)
                    for load, word in choices
                ]
                served = [config for config in configs if config is not None]
                found += served
                looked_at += bool(served)
                if looked_at == _TILES:
                    break
        if found:
            break
    return _fastest(problem, found)


def _fastest(
    problem: PermuteProblem, configs: Iterable[GatherConfig]
) -> tuple[GatherConfig, Accesses]:
    """Return the config that takes the least time at its best pitches, and what it accesses.

    Pitches are only looked for where a config may be faster than what has been found.
    """
    least = [(count_gathers(problem, each, takes=1.0).cycles, each) for each in configs]
    found: tuple[GatherConfig, Accesses] | None = None
    for bound, config in sorted(least, key=lambda each: each[0]):
        if found is not None and bound >= found[1].cycles:
            break
        best, takes = without_conflicts(problem, config)
        counts = count_gathers(problem, best, takes=takes)
        if found is None or counts.cycles < found[1].cycles:
            found = best, counts
    assert found is not None
    return found


def _threads(problem: PermuteProblem, tile: tuple[int, ...], unit_bytes: int) -> int:
    """Return the threads of a CTA with a tile."""
    each = _FEW_BYTES if is_small(problem, unit_bytes) else _THREAD_BYTES
    size = prod(tile) * unit_bytes
    return next((n for n in _THREADS if size <= n * each), _THREADS[-1])


def config_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    load: int,
    word: int,
    sector: int,
) -> GatherConfig | None:
    """Return the config of a tile, at any pitches; `None` if threads keep no constant distances."""
    threads = _threads(problem, tile, unit_bytes)
    source = RowSide(Side.of(problem, tile, is_source=True), load)
    pitches = Pitches.of(source).apart()
    config = GatherConfig(tile, threads, unit, unit_bytes, load, word, pitches, sector=sector)
    _, target = sides_of(problem, config)
    if target.advance < 1 or target.whole < 1 or loading(source, threads) is None:
        return None
    writing = storing(target, threads)
    if writing is None or writing.threads[-1] < min(target.whole, sector // word):
        return None
    if word > 1 and not target.is_aligned and storing_ends(target, threads) is None:
        return None
    return config
