"""What a permutation accesses: requests, wavefronts and bytes, counted before it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.by_words.config import (
    WordConfig,
    reading_of,
    resident,
    sides_of,
)
from lego_mlir.kernels.permute.by_words.stored_sectors import (
    least_parts,
    least_stored_sectors,
    stored_sectors,
)
from lego_mlir.kernels.permute.config import CopyConfig, TileConfig
from lego_mlir.kernels.permute.costs.accesses import (
    OF_COPIES,
    OF_RUNS,
    OF_TILES,
    OF_WORDS,
    Accesses,
    KindPrices,
    ctas_at_a_time,
)
from lego_mlir.kernels.permute.costs.tiles import Tiles, tiles_of
from lego_mlir.kernels.permute.problem import Mode, PermuteProblem, count_tiles
from lego_mlir.kernels.permute.runs import RunConfig, Side, find_padding, warps_of
from lego_mlir.kernels.permute.walks import Walk

_ONCE, _UNIT, _DIGIT, _STORED, _CUT, _GROUPED, _ENDS = 25.0, 4.5, 0.5, 2.2, 9.0, 6.0, 140.0
"""Instructions, fitted to what the simulator counts: of a warp for each way over rows; for each
unit of its word if rows begin anywhere, and more for each mode that the unit's place is divided by;
for a unit that is loaded; more for a word that a tile stores which overlaps another one, and for
one that is counted from a sector; of a warp for the ends of rows."""


def count_words(
    problem: PermuteProblem, config: WordConfig, unit_bytes: int, *, at_least: bool = False
) -> Accesses:
    """Return the accesses of a permutation by words.

    Args:
        problem: the permutation of units.
        config: its tile.
        unit_bytes: bytes of a unit.
        at_least: whether they are those that there are at least, whatever its pitches and lanes.
    """
    source, target = sides_of(problem, config)
    reading = reading_of(source, config)
    writing = target.traversal(target.stored, config.threads)
    assert reading is not None
    assert writing is not None
    loads, stores = reading.requests, writing.requests
    put = 1.0
    if not at_least:
        (put,) = put_wavefronts(problem, config, unit_bytes, [config.pitches])
    wide = max(1, config.word * unit_bytes * WARP_THREADS // BANK_LINE_BYTES)
    wavefronts = prod(config.tile) / WARP_THREADS * put + stores * wide
    digits = len(source.side.run) - 1
    of_unit = _DIGIT * digits
    if not source.is_aligned:  # each word of a row has conditions of its own
        of_unit = (of_unit + _UNIT) * reading.counts[-1]
    instructions = (reading.warps + writing.warps) * _ONCE
    instructions += reading.warps * config.word * of_unit + loads * _STORED * config.word
    of_step = 0 if config.group == 1 else _GROUPED
    instructions += stores * of_step
    ends = None
    if config.sector == 1 and target.ends:
        ends = target.traversal(target.ends, config.threads)
        assert ends is not None
        stores += ends.requests
        wavefronts += ends.requests
        instructions += ends.warps * _ENDS + ends.requests * 2 * of_step
    requests = loads + stores
    tiles = tiles_of(problem, config.tile, config.unit, unit_bytes, config.sector)
    if not at_least:
        stored = stored_sectors(target, writing, ends, unit_bytes)
    elif tiles.stores_whole_sectors:
        stored = least_parts(target, writing)
    else:
        stored = least_stored_sectors(target.side, unit_bytes)
    found = tiles.accesses(
        requests,
        wavefronts,
        steps=prod(reading.counts) * config.word + prod(writing.counts),
        ctas=resident(problem, config, unit_bytes),
        threads=config.threads,
        prices=OF_WORDS,
        stored=stored,
    )
    instructions += found.special * stores * _CUT
    instructions *= found.requests / requests
    unaligned = (not source.is_aligned) + (not target.is_aligned)
    addressed = 0 if source.is_aligned else prod(reading.counts) * config.word
    return replace(found, instructions=instructions, unaligned=unaligned, addressed=addressed)


def count_roughly(
    problem: PermuteProblem,
    tiles: Sequence[tuple[int, ...]],
    sector: int,
    threads: Any,
    unit_bytes: int,
    prices: KindPrices,
    joined: int = 1,
) -> Accesses:
    """Return what permutations by words or squares move, and how long CTAs take, no accesses.

    Args:
        problem: the permutation of units.
        tiles: units of each mode, of several tiles: what is returned has arrays.
        sector: as of `WordConfig`.
        threads: of a CTA with each tile.
        unit_bytes: bytes of a unit.
        prices: of this kind of kernel.
        joined: as of `SquareConfig`.
    """
    found = Tiles.of(problem, tiles, 1, unit_bytes, sector, joined)
    units = found.units / threads
    ctas = ctas_at_a_time(threads, units * unit_bytes, found.units * unit_bytes)
    return found.accesses(
        0, 0, steps=units, ctas=ctas, threads=threads, prices=prices, request=float("inf")
    )


def count_tiles_of_two_modes(
    problem: PermuteProblem, config: TileConfig, element_bytes: int
) -> Accesses:
    """Return the accesses of a permutation by tiles of two modes, which do not meet in banks."""
    special = {problem.read: config.across, problem.written: config.down}
    tile = tuple(special.get(mode, 1) for mode in problem.modes)
    tiles = Tiles.of(problem, tile, 1, element_bytes)
    # Warps have nothing to do whose rows are beyond the end; others access part of a row.
    across, down = _cover(problem.read, config.across), _cover(problem.written, config.down)
    elements = tiles.warps
    loads = elements * across / config.load_width
    stores = elements * down / config.store_width
    put = max(1.0, config.thread_rows * element_bytes / BANK_BYTES) / config.thread_rows
    taken = max(1.0, config.store_width * element_bytes / BANK_BYTES) / config.store_width
    of_thread = prod(tile) // config.threads
    found = tiles.accesses(
        loads + stores,
        elements * (across * put + down * taken),
        steps=of_thread // config.load_width + config.stores,
        ctas=ctas_at_a_time(
            config.threads,
            of_thread * element_bytes,
            prod(tile) * element_bytes,
        ),
        threads=config.threads,
        apart=count_tiles(problem.written.size, config.down),
        prices=OF_TILES,
        request=WARP_THREADS * config.store_width * element_bytes,
    )
    unaligned = (config.load_width == 1) + (config.store_width == 1)
    addressed = config.thread_blocks if config.load_width == 1 else 0
    return replace(found, unaligned=unaligned, addressed=addressed)


def count_copy(problem: PermuteProblem, config: CopyConfig, element_bytes: int) -> Accesses:
    """Return the accesses of a copy: those of warps some of whose threads may have no work."""
    special = {problem.read: config.columns * config.width}
    if problem.others:
        special[problem.others[-1]] = config.rows
    tile = tuple(special.get(mode, 1) for mode in problem.modes)
    tiles = Tiles.of(problem, tile, 1, element_bytes)
    threads = config.rows * config.columns
    requests = 2 * prod(tile) / config.width / WARP_THREADS
    ctas = ctas_at_a_time(threads, config.width * element_bytes, 0)
    return tiles.accesses(
        requests,
        0.0,
        steps=2,
        ctas=ctas,
        threads=threads,
        apart=1,
        prices=OF_COPIES,
        request=WARP_THREADS * config.width * element_bytes,
    )


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
    own = [walk.steps(most) for walk in (reading, writing)]
    of_warps = warps_of(max(walk.threads(most) for walk in (reading, writing)))
    tiles = Tiles.of(problem, config.tile, config.unit, unit_bytes)
    return tiles.accesses(
        sum(requests),
        wavefronts,
        steps=own[0] * word + own[1],
        ctas=ctas_at_a_time(
            of_warps,
            own[0] * max(BANK_BYTES, unit_bytes),
            (config.units // period) * (period + more) * unit_bytes,
        ),
        threads=of_warps,
        prices=OF_RUNS,
        request=WARP_THREADS * config.store_word * unit_bytes,
    )


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


def _cover(mode: Mode, tile: int) -> float:
    """Return how many elements of tiles there are along a mode for each one of the mode."""
    return count_tiles(mode.size, tile) * tile / mode.size
