"""The tile of whole runs that a permutation takes, and when it is better than a tile of two modes.

Device memory is read in halves of its lines of 128 bytes, and written in sectors of 32: a run that
is short, or begins anywhere, moves more than its own bytes.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lego_mlir.hardware.limits import BANK_BYTES, HALF_LINE_BYTES, SECTOR_BYTES
from lego_mlir.kernels.permute.costs.tiles import TileRows
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import RunConfig

_RUN_BYTES = 8192
"""Runs are not looked at that are longer: they move little more than their own bytes."""

_TILE_BYTES, _NARROW_TILE_BYTES = 32768, 24576
"""The most bytes of a tile, and of one whose units are smaller than a word."""

_RUN_OVERHEAD = 32
"""What a run costs besides its own bytes: device memory is fastest where it is read in order."""

_PARTS = 6
"""Into so many equal parts a mode is divided at most, besides powers of two."""

_SMALL = 0.1
"""What a tile of half the size costs more, for what each CTA does once."""

_SMALLEST = 8
"""Tiles that are smaller by more than this are not looked at, if there are larger ones."""

_NARROW = 0.15
"""What each halving of a word that a side is accessed by costs more."""

_CTAS = 132 * 8
"""Tiles are smaller than `_TILE_BYTES` where there would be fewer CTAs."""

_THREADS, _STEPS = (64, 128, 256, 512), 16
"""The numbers of threads, and the accesses of a side that a thread makes if there may be more."""


def choose_runs(problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int) -> RunConfig:
    """Return the tile of whole runs for a permutation.

    Args:
        problem: the permutation of units.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take, by the alignment of both arrays.
    """
    import numpy as np

    tile_bytes = _NARROW_TILE_BYTES if unit_bytes < BANK_BYTES else _TILE_BYTES
    most, large = tiles_of_runs(problem, unit_bytes, tile_bytes, _CTAS)
    word = max(1, min(BANK_BYTES, max_bytes) // unit_bytes)

    cost = costs_of_tiles(problem, np.array(large), unit_bytes, most)
    narrow = sum(np.log2(word / width) for width in _words(problem, np.array(large), word))
    _, tile = min(zip((cost * (1 + _NARROW * narrow)).tolist(), large, strict=True))
    return _with_threads(problem, tile, unit, word)


def tiles_of_runs(
    problem: PermuteProblem, unit_bytes: int, tile_bytes: int, ctas: int
) -> tuple[int, list[tuple[int, ...]]]:
    """Return the tiles that have a run of the input and one of the output.

    Args:
        problem: the permutation of units.
        unit_bytes: bytes of a unit.
        tile_bytes: of a tile, at most: less where there would be fewer CTAs.
        ctas: that there are at least, unless a tile has 1 KiB.

    Returns:
        The most units of a tile, and the tiles that are not much smaller.
    """
    total = prod(m.size for m in problem.modes)
    most = max(1, tile_bytes // unit_bytes)
    while total // most < ctas and most > 1024 // unit_bytes:
        most //= 2
    tiles = {
        tuple(max(pair) for pair in zip(read, written, strict=True))
        for read in _runs(problem, most, unit_bytes, is_source=True)
        for written in _runs(problem, most, unit_bytes, is_source=False)
    }
    fitting = [tile for tile in tiles if prod(tile) <= most]
    return most, [tile for tile in fitting if prod(tile) * _SMALLEST >= most] or fitting


def _runs(
    problem: PermuteProblem, most: int, unit_bytes: int, *, is_source: bool
) -> list[tuple[int, ...]]:
    """Return the tiles that are one run of the input or of the output, of at most `most` units."""
    sizes = [m.size for m in problem.modes]
    order = sorted(
        range(len(sizes)),
        key=lambda k: problem.modes[k].source if is_source else problem.modes[k].target,
    )
    found: list[tuple[int, ...]] = []
    tile = [1] * len(sizes)
    for k in order:
        inner = prod(tile)
        longest = min(most, _RUN_BYTES // unit_bytes)
        found += [
            (*tile[:k], n, *tile[k + 1 :]) for n in _divisions(sizes[k]) if inner * n <= longest
        ]
        tile[k] = sizes[k]
    return found


def _divisions(size: int) -> list[int]:
    """Return sizes of tiles: powers of two, and those that divide a mode evenly."""
    powers = [1 << n for n in range(size.bit_length()) if 1 << n < size]
    return sorted({*powers, *(-(-size // n) for n in range(1, _PARTS + 1))})


def costs_of_tiles(problem: PermuteProblem, tiles: Any, unit_bytes: int, most: int) -> Any:
    """Return what each tile costs for each byte: what it moves, with threads that have no work."""
    import numpy as np

    sizes = np.array([mode.size for mode in problem.modes])
    covered = (-(-sizes // tiles) * tiles / sizes).prod(axis=-1)
    small = np.log2(most / tiles.prod(axis=-1))
    sides = [TileRows.of(problem, tiles, is_source=s) for s in (True, False)]
    overhead = sum(_RUN_OVERHEAD / (rows.units * unit_bytes) for rows in sides) / 2
    return (moved(problem, tiles, unit_bytes) + overhead) * covered * (1 + _SMALL * small)


def _words(problem: PermuteProblem, tiles: Any, word: int) -> list[Any]:
    """Return the units of accesses to input and output: at most a word, as runs are aligned."""
    import numpy as np

    found = []
    for is_source in (True, False):
        rows = TileRows.of(problem, tiles, is_source=is_source)
        ends = np.gcd(rows.units, rows.size * rows.inner)
        found.append(np.gcd(word, np.gcd(ends, rows.apart)))
    return found


def _with_threads(
    problem: PermuteProblem, tile: tuple[int, ...], unit: int, word: int
) -> RunConfig:
    """Return the config of a tile, with threads for about `_STEPS` accesses each."""
    import numpy as np

    load, store = (int(width) for width in _words(problem, np.array(tile), word))
    accesses = prod(tile) // max(load, store)
    threads = next((n for n in _THREADS if accesses <= n * _STEPS), _THREADS[-1])
    return RunConfig(tile, threads, unit, load, store)


def moved(problem: PermuteProblem, tiles: Any, element_bytes: int) -> Any:
    """Return the bytes that a permutation by each of some tiles moves, for each byte of the tensor.

    Args:
        problem: the permutation.
        tiles: elements of each mode, along the last axis of an array.
        element_bytes: bytes of an element.
    """
    import numpy as np

    clipped = np.minimum(tiles, [mode.size for mode in problem.modes])
    source, target = (TileRows.of(problem, clipped, is_source=s) for s in (True, False))
    read = source.touched(element_bytes, HALF_LINE_BYTES)
    return (read + target.touched(element_bytes, SECTOR_BYTES)) / 2
