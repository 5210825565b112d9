"""The tile of whole runs that a permutation takes, and when it is better than a tile of two modes.

Device memory is read in halves of its lines of 128 bytes, and written in sectors of 32: a run that
is short, or begins anywhere, moves more than its own bytes. `touched` counts them, for all
heuristics of permutations.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, log2, prod

from lego_mlir.hardware.limits import BANK_BYTES, HALF_LINE_BYTES, SECTOR_BYTES
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.runs import RunConfig, Side

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
    tile_bytes = _NARROW_TILE_BYTES if unit_bytes < BANK_BYTES else _TILE_BYTES
    most, large = tiles_of_runs(problem, unit_bytes, tile_bytes, _CTAS)
    word = max(1, min(BANK_BYTES, max_bytes) // unit_bytes)

    def cost(tile: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        narrow = sum(log2(word // w) for w in _words(problem, tile, word))
        of_tile = cost_of_tile(problem, tile, unit_bytes, most)
        return of_tile * (1 + _NARROW * narrow), tile

    return _with_threads(problem, min(large, key=cost), unit, word)


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


def cost_of_tile(
    problem: PermuteProblem, tile: tuple[int, ...], unit_bytes: int, most: int
) -> float:
    """Return what a tile costs for each byte: what it moves, with threads that have no work."""
    pairs = [(m.size, t) for m, t in zip(problem.modes, tile, strict=True)]
    covered = prod(-(-n // t) * t for n, t in pairs) / prod(n for n, _ in pairs)
    small = log2(most / prod(tile))
    sides = (Side.of(problem, tile, is_source=is_source) for is_source in (True, False))
    overhead = sum(_RUN_OVERHEAD / (side.extents[-1] * unit_bytes) for side in sides) / 2
    return (moved(problem, tile, unit_bytes) + overhead) * covered * (1 + _SMALL * small)


def _words(problem: PermuteProblem, tile: tuple[int, ...], word: int) -> tuple[int, int]:
    """Return the units of accesses to input and output: at most a word, as runs are aligned."""
    found = []
    for is_source in (True, False):
        side = Side.of(problem, tile, is_source=is_source)
        width = word
        while not side.is_aligned(width):
            width //= 2
        found.append(width)
    return found[0], found[1]


def _with_threads(
    problem: PermuteProblem, tile: tuple[int, ...], unit: int, word: int
) -> RunConfig:
    """Return the config of a tile, with threads for about `_STEPS` accesses each."""
    load, store = _words(problem, tile, word)
    accesses = prod(tile) // max(load, store)
    threads = next((n for n in _THREADS if accesses <= n * _STEPS), _THREADS[-1])
    return RunConfig(tile, threads, unit, load, store)


def moved(problem: PermuteProblem, tile: tuple[int, ...], element_bytes: int) -> float:
    """Return the bytes that a permutation by tiles moves, for each byte of the tensor.

    Args:
        problem: the permutation.
        tile: elements of each mode.
        element_bytes: bytes of an element.
    """
    return sum(ratio for ratio, _ in _touched(problem, tile, element_bytes)) / 2


def touched(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    element_bytes: int,
    units: tuple[int, int] = (HALF_LINE_BYTES, SECTOR_BYTES),
) -> tuple[float, float]:
    """Return the bytes of the units that tiles touch, for each byte that is loaded and stored.

    A run that is cut moves its own bytes only, but touches as many units beyond them as any other.

    Args:
        problem: the permutation.
        tile: elements of each mode.
        element_bytes: bytes of an element.
        units: bytes of a unit of the input, and of one of the output.
    """
    found = _touched(problem, tile, element_bytes, units)
    read, written = (1 + (r - 1) * cut for r, cut in found)
    return read, written


def _touched(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    element_bytes: int,
    units: tuple[int, int] = (HALF_LINE_BYTES, SECTOR_BYTES),
) -> Iterator[tuple[float, float]]:
    """Yield what whole runs touch for each byte, and how many times more runs cut ones make."""
    sizes = tuple(m.size for m in problem.modes)
    clipped = tuple(min(t, n) for t, n in zip(tile, sizes, strict=True))
    for is_source, unit in zip((True, False), units, strict=True):
        side = Side.of(problem, clipped, is_source=is_source)
        run = side.extents[-1] * element_bytes
        around = [prod(sizes[k] for k in side.order[n:]) for n in range(1, len(side.outer) + 1)]
        step = gcd(unit, run, *(n * element_bytes for n in around))
        size, part = sizes[side.run[0]], clipped[side.run[0]]
        # A run begins at any multiple of `step`: it touches units in proportion.
        yield (run + unit - step) / run, count_tiles(size, part) * part / size
