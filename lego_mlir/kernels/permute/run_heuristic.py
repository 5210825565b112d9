"""The tile of whole runs that a permutation takes, and when it is better than a tile of two modes.

Device memory is read in halves of its lines of 128 bytes, and written in sectors of 32: a run that
is short, or begins anywhere, moves more than its own bytes. `moved` counts them, for all heuristics
of permutations.
"""

from __future__ import annotations

from math import gcd, prod

from lego_mlir.hardware.limits import BANK_BYTES, HALF_LINE_BYTES, SECTOR_BYTES
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.runs import RunConfig, Side

_RUN_BYTES = 256
"""A run is at least so long, if the tile may be so large."""

_TILE_BYTES = 16384
"""Bytes of a tile that is not larger than it has to be for its runs."""

_CTAS = 132 * 4
"""Tiles are smaller than `_TILE_BYTES` where there would be fewer CTAs."""

_THREADS, _STEPS = (64, 128, 256, 512), 16
"""The numbers of threads, and the accesses of a side that a thread makes if there may be more."""


def choose_runs(problem: PermuteProblem, element_bytes: int, max_width: int) -> RunConfig:
    """Return the tile of whole runs for a permutation.

    Args:
        problem: the permutation.
        element_bytes: bytes of an element.
        max_width: elements that one access may take, by the alignment of both arrays.
    """
    sizes = [m.size for m in problem.modes]
    total = prod(sizes)
    tile = [1] * len(sizes)
    run = _RUN_BYTES // element_bytes
    orders = [
        sorted(range(len(sizes)), key=lambda k: problem.modes[k].source),
        sorted(range(len(sizes)), key=lambda k: problem.modes[k].target),
    ]
    most = max(run, _TILE_BYTES // element_bytes)
    while total // most < _CTAS and most > 1024 // element_bytes:
        most //= 2
    # The two runs grow by turns: the shorter one first.
    while prod(tile) < most:
        orders.sort(key=lambda order: _run_length(sizes, tile, order))
        found = (_next(sizes, tile, order) for order in orders)
        k, size = next((grown for grown in found if grown is not None), (0, 0))
        if not size:
            break
        if prod(tile) // tile[k] * size > 2 * most:
            break
        tile[k] = size
    return _with_widths(problem, tile, max_width, element_bytes)


def _run_length(sizes: list[int], tile: list[int], order: list[int]) -> int:
    """Return the elements of the run of a tile."""
    length = 1
    for k in order:
        length *= tile[k]
        if tile[k] < sizes[k]:
            break
    return length


def _next(sizes: list[int], tile: list[int], order: list[int]) -> tuple[int, int] | None:
    """Return the mode that makes a run longer, and its size then; `None` if there is none."""
    for k in order:
        if tile[k] < sizes[k]:
            doubled = 2 * tile[k]
            # A mode that is nearly whole becomes so: its run goes on then.
            return k, sizes[k] if doubled * 4 >= 3 * sizes[k] else doubled
    return None


def _with_widths(
    problem: PermuteProblem, tile: list[int], max_width: int, element_bytes: int
) -> RunConfig:
    """Return the config of a tile, with the widest accesses of a word that are aligned."""
    sizes = [m.size for m in problem.modes]
    widths = []
    for is_source in (True, False):
        side = Side.of(problem, tile, is_source=is_source)
        starts = [prod(sizes[k] for k in side.order[n:]) for n in range(len(side.outer) + 1)]
        width = min(max(1, BANK_BYTES // element_bytes), max_width)
        while any(n % width for n in (side.extents[-1], *starts)):
            width //= 2
        widths.append(width)
    load, store = widths
    vectors = prod(tile) // max(widths)
    threads = next((n for n in _THREADS if vectors <= n * _STEPS), _THREADS[-1])
    return RunConfig(tuple(tile), threads, load, store)


def moved(problem: PermuteProblem, tile: tuple[int, ...], element_bytes: int) -> float:
    """Return the bytes that a permutation by tiles moves, for each byte of the tensor.

    Args:
        problem: the permutation.
        tile: elements of each mode.
        element_bytes: bytes of an element.
    """
    sizes = tuple(m.size for m in problem.modes)
    clipped = tuple(min(t, n) for t, n in zip(tile, sizes, strict=True))
    found = 0.0
    for is_source, unit in ((True, HALF_LINE_BYTES), (False, SECTOR_BYTES)):
        side = Side.of(problem, clipped, is_source=is_source)
        run = side.extents[-1] * element_bytes
        around = [prod(sizes[k] for k in side.order[n:]) for n in range(1, len(side.outer) + 1)]
        step = gcd(unit, run, *(n * element_bytes for n in around))
        # A run begins at any multiple of `step`: it touches units in proportion.
        found += (run + unit - step) / run
    return found / 2
