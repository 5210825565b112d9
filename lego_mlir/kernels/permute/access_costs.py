"""What a permutation's accesses cost: requests, wavefronts and bytes, counted before it is built.

All accesses of a warp go through one unit of a multiprocessor. A request for global memory takes it
for about three cycles, one for shared memory for one in each wavefront. Meanwhile device memory
moves the sectors that are touched. The time is near to the longer of the two. Fitted to 188
permutations that were measured on an H200, by tiles of two modes or by runs: half of the estimates
are between 6 % too low and 2 % too high, nine in ten between 25 % too low and 9 % too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.config import TileConfig
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.run_heuristic import moved
from lego_mlir.kernels.permute.runs import RunConfig, Side, find_padding
from lego_mlir.kernels.permute.traversal import Traversal
from lego_mlir.kernels.permute.walks import Walk
from lego_mlir.kernels.permute.word_config import WordConfig, reading_of, sides_of

_REQUEST = 3.0
"""Cycles of a request for global memory, where a wavefront of shared memory takes one."""

_BYTES = 16.0
"""Bytes that a copy reads and writes in a cycle, for each multiprocessor of an H200."""

_SCHEDULERS = 4
"""Warp schedulers of a multiprocessor (CUDA C++ Programming Guide, "Compute Capability 9.0")."""

_ONCE, _UNIT, _DIGIT, _STORED, _STEP, _CUT = 60, 8, 6, 1.5, 4, 40
"""Instructions, read off PTX: of a thread for each way over rows; for each unit of its word, and
more for each mode that the unit's place is divided by; for a unit that is put into shared memory;
for a word; more for a word that a tile stores which overlaps another one."""

_TOUCHED = 0.5
"""The part of the bytes touched beyond those asked for that no neighbour asks for soon."""

_SHARPNESS = 3.0
"""The exponent of the norm that the time is of both parts: the larger, the nearer to the longer."""


_SHORT_OF_A_COPY, _MUCH = 0.5, 1.3
"""Below these a kernel is so near to a copy that nothing else is looked at."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a permutation, for each warp's worth of elements.

    Attributes:
        element_bytes: of an element.
        moved: bytes that device memory moves, for each byte of the tensor.
        requests: requests for global memory.
        wavefronts: of shared memory.
        instructions: that are issued; 0 if they are not counted.
    """

    element_bytes: float
    moved: float
    requests: float
    wavefronts: float
    instructions: float = 0.0

    @property
    def access_cycles(self) -> float:
        """Cycles of a multiprocessor's accesses."""
        return self.wavefronts + _REQUEST * self.requests

    @property
    def issue_cycles(self) -> float:
        """Cycles of a multiprocessor's schedulers, each of which issues an instruction a cycle."""
        return self.instructions / _SCHEDULERS

    @property
    def memory_cycles(self) -> float:
        """Cycles of device memory."""
        needed = 2 * self.element_bytes * WARP_THREADS / _BYTES
        return needed * (1 + _TOUCHED * (self.moved - 1))

    @property
    def may_gain(self) -> bool:
        """Whether there is more to do than what a copy does."""
        return self.access_cycles > _SHORT_OF_A_COPY * self.memory_cycles or self.moved > _MUCH

    @property
    def cycles(self) -> float:
        """Cycles of a multiprocessor."""
        parts = self.access_cycles, self.memory_cycles, self.issue_cycles
        return float(sum(part**_SHARPNESS for part in parts) ** (1 / _SHARPNESS))


def count_words(problem: PermuteProblem, config: WordConfig, unit_bytes: int) -> Accesses:
    """Return the accesses of a permutation by words.

    Args:
        problem: the permutation of units.
        config: its tile.
        unit_bytes: bytes of a unit.
    """
    source, target = sides_of(problem, config)
    reading = reading_of(source, config)
    writing = target.traversal(target.whole, config.threads)
    assert reading is not None
    assert writing is not None
    loads, stores = _requests(reading), _requests(writing)
    (put,) = put_wavefronts(problem, config, unit_bytes, [config.pitches])
    wide = max(1, config.word * unit_bytes * WARP_THREADS // BANK_LINE_BYTES)
    wavefronts = prod(config.tile) / WARP_THREADS * put + stores * wide
    digits = len(source.side.run) - 1
    of_unit = _DIGIT * digits + (1 if source.is_aligned else _UNIT + 2 * reading.counts[-1])
    instructions: float = (_warps(reading) + _warps(writing)) * _ONCE
    instructions += _warps(reading) * config.word * of_unit
    instructions += loads * (_STEP + _STORED * config.word) + stores * _STEP
    if not target.is_aligned:
        ends = target.traversal(2 * (config.word - 1), config.threads)
        assert ends is not None
        stores += _requests(ends)
        wavefronts += _requests(ends)
        instructions += _warps(ends) * _ONCE + _requests(ends) * _STEP
    pairs = [(m.size, t) for m, t in zip(problem.modes, config.tile, strict=True)]
    whole = prod(n // t / count_tiles(n, t) for n, t in pairs)
    instructions += (1 - whole) * stores * _CUT
    requests = loads + stores
    found = _accesses(problem, config.tile, config.unit, unit_bytes, requests, wavefronts)
    return replace(found, instructions=instructions * found.requests / requests)


def count_tiles_of_two_modes(
    problem: PermuteProblem, config: TileConfig, element_bytes: int
) -> Accesses:
    """Return the accesses of a permutation by tiles of two modes, which do not meet in banks."""
    special = {problem.read: config.across, problem.written: config.down}
    tile = tuple(special.get(mode, 1) for mode in problem.modes)
    elements = prod(tile) / WARP_THREADS
    loads, stores = elements / config.load_width, elements / config.store_width
    put = max(1.0, config.thread_rows * element_bytes / BANK_BYTES) / config.thread_rows
    taken = max(1.0, config.store_width * element_bytes / BANK_BYTES) / config.store_width
    wavefronts = elements * (put + taken)
    return _accesses(problem, tile, 1, element_bytes, loads + stores, wavefronts)


def count_runs(problem: PermuteProblem, config: RunConfig, unit_bytes: int) -> Accesses:
    """Return the accesses of a permutation by runs.

    Args:
        problem: the permutation of units.
        config: its tile.
        unit_bytes: bytes of a unit.
    """
    import numpy as np

    source, target = (Side.of(problem, config.tile, is_source=s) for s in (True, False))
    most, word = config.threads, config.load_word
    reading = Walk.of(source.words(word), most)
    writing = Walk.of(target.words(config.store_word), most)
    count = reading.threads(most)
    threads = np.arange(min(count, _SAMPLE))
    start = reading.start(threads, count, most)
    run = OrderBy(Row(*(config.tile[k] for k in source.run)))
    inside = OrderBy(Row(*(config.tile[k] for k in target.order)))
    period, more = find_padding(source, target, config, unit_bytes)

    def put(index: Sequence[Any]) -> Any:
        """Return the bytes of shared memory that the units of words are put at."""
        *outer, column = index
        place = run.inv(column * word + np.arange(word)[:, None])
        rows = dict(zip((*source.outer, *source.run), (*outer, *place), strict=True))
        position = inside.apply(*(rows[k] for k in target.order))
        return (position // period * (period + more) + position % period) * unit_bytes

    first = np.broadcast_to(put(start), (word, len(threads)))
    steps = np.array(reading.whole_steps(most)).T
    of_thread = np.atleast_2d(put([np.ravel(i)[0] + d for i, d in zip(start, steps, strict=True)]))
    together = _neighbours(of_thread[0], first, unit_bytes)
    put_each = _mean_wavefronts(first, unit_bytes * together) / together
    requests = [_requests_of_walk(walk, most) for walk in (reading, writing)]
    wavefronts = requests[0] * word * put_each + requests[1] * max(1, unit_bytes // BANK_BYTES)
    return _accesses(problem, config.tile, config.unit, unit_bytes, sum(requests), wavefronts)


def _neighbours(of_thread: Any, first: Any, unit_bytes: int) -> int:
    """Return how many units are stored together, which the assembler finds to be neighbours.

    Args:
        of_thread: the bytes that a thread puts units at, in all its steps.
        first: the bytes of all threads' first units.
        unit_bytes: bytes of a unit.
    """
    found, count = {int(place) for place in of_thread}, BANK_BYTES // unit_bytes
    while count > 1:
        wide = count * unit_bytes
        starts = [place for place in found if (place - min(found)) % wide == 0]
        whole = [s for s in starts if all(s + k * unit_bytes in found for k in range(count))]
        if 2 * len(whole) * count >= len(found) and not (first % wide).any():
            return count
        count //= 2
    return 1


def _requests_of_walk(walk: Walk, most: int) -> int:
    """Return the requests of warps that go over a tile."""
    whole = len(walk.whole_steps(most)) * -(-walk.threads(most) // WARP_THREADS)
    return whole + len(walk.last_steps(most)) * -(-walk.left(most) // WARP_THREADS)


def _mean_wavefronts(places: Any, width: int) -> float:
    """Return the wavefronts of a request, by the bytes that threads access, rows of requests."""
    import numpy as np

    from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts

    missing = [(0, 0), (0, -places.shape[1] % WARP_THREADS)]
    active = np.pad(np.ones(places.shape, bool), missing).reshape(-1, WARP_THREADS)
    places = np.pad(places, missing).reshape(-1, WARP_THREADS)
    return float(np.mean(wavefronts(places, width, active).executed))


def put_wavefronts(
    problem: PermuteProblem, config: WordConfig, unit_bytes: int, pitches: Sequence[Sequence[int]]
) -> list[float]:
    """Return the wavefronts of a store of units into shared memory, for several pitches.

    All steps of a thread are at constant distances: the first one has the conflicts of all.

    Args:
        problem: the permutation of units.
        config: the tile, its threads and lanes.
        unit_bytes: bytes of a unit.
        pitches: of all modes, several times.
    """
    import numpy as np

    from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts

    source, _ = sides_of(problem, config)
    reading = reading_of(source, config)
    assert reading is not None
    threads = np.arange(min(reading.count, _SAMPLE))
    rows, column = reading.place(threads)
    strides = [source.side.strides[k] for k in source.side.outer]
    starts = sum((i * stride for i, stride in zip(rows, strides, strict=True)), start=0)
    phase = 0 if source.is_aligned else starts % config.word
    along = column * config.word + np.arange(config.word)[:, None] - phase
    inside = (along >= 0) & (along < source.units)
    run = OrderBy(Row(*(source.side.tile[k] for k in source.side.run)))
    place = run.inv(np.where(inside, along, 0))
    index = np.zeros((len(problem.modes), *along.shape), np.int64)
    for k, i in zip((*source.side.outer, *source.side.run), (*rows, *place), strict=True):
        index[k] = i
    missing = [(0, 0), (0, -len(threads) % WARP_THREADS)]
    index, inside = np.pad(index, [(0, 0), *missing]), np.pad(inside, missing)
    places = np.tensordot(np.array(pitches, np.int64), index, 1) * unit_bytes
    shape = (len(pitches), -1, WARP_THREADS)
    active = np.broadcast_to(inside, places.shape).reshape(shape)
    executed = wavefronts(places.reshape(shape), unit_bytes, active).executed
    return [float(n) for n in executed.sum(1) / inside.sum() * WARP_THREADS]


_SAMPLE = 128
"""Threads whose wavefronts are counted."""


def _requests(traversal: Traversal) -> float:
    """Return the requests of warps on a tile."""
    return _warps(traversal) * prod(traversal.counts)


def _warps(traversal: Traversal) -> int:
    return -(-traversal.count // WARP_THREADS)


def _accesses(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    requests: float,
    wavefronts: float,
) -> Accesses:
    """Return the accesses of a permutation, by those of a tile."""
    pairs = [(m.size, t) for m, t in zip(problem.modes, tile, strict=True)]
    tiles = prod(count_tiles(n, t) for n, t in pairs)
    warps = prod(n for n, _ in pairs) * unit / WARP_THREADS / tiles
    covered = prod(count_tiles(n, t) * t for n, t in pairs) / prod(n for n, _ in pairs)
    bytes_moved = moved(problem, tile, unit_bytes) * covered
    return Accesses(unit_bytes / unit, bytes_moved, requests / warps, wavefronts / warps)
