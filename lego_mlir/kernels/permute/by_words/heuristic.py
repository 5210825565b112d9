"""The tile, the pitches and the threads of a permutation by words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from math import gcd, prod
from typing import Any

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    BANKS,
    HALF_LINE_BYTES,
    MAX_ACCESS_BYTES,
    SECTOR_BYTES,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.by_words.config import (
    WordConfig,
    is_grouped,
    reading_of,
    sides_of,
)
from lego_mlir.kernels.permute.candidates import Candidate, ranked
from lego_mlir.kernels.permute.costs.accesses import OF_WORDS, Accesses, KindPrices
from lego_mlir.kernels.permute.costs.counts import count_roughly, count_words, put_wavefronts
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.run_heuristic import tiles_of_runs
from lego_mlir.kernels.permute.runs import Side, steps_apart

_WORDS = (4, 8)
"""The bytes of words that are looked at."""

_TILE_BYTES, _CTAS = 65536, 132
"""The most bytes of a tile, and the CTAs that there are at least, where they have 1 KiB."""

REREAD = 2.0
"""Tiles that store whole sectors overlap by less than what they are apart, times this less 1."""

_THREADS = (64, 128, 256, 512)
"""The numbers of threads."""

_THREAD_BYTES, _MOST_BYTES = 96, 128
"""Bytes that a thread loads, about and at most, where there may be more threads."""

_MOST_OF_ROWS = 96
"""The most bytes if a thread takes several words of a row that begins anywhere, and half as many
for each mode that the row has beyond one: of more, CTAs with the most threads spill registers, and
all compute for long where each element goes."""

_FEW_BYTES, _SMALL_BYTES = 32, 16 << 20
"""Bytes that a thread loads, about, of a tensor of less than so many. Its tiles do not store whole
sectors: what each tile does more for that takes longer than it saves."""

_LANES = (2, 4, 8)
"""Rows that neighbouring threads may be on."""

_BETTER, _FEW = 0.95, 1.1
"""Lanes are on several rows where that saves wavefronts, and pitches looked for until these."""


def word_candidates(
    problem: PermuteProblem,
    unit: int,
    unit_bytes: int,
    max_bytes: int,
    tiles_each: int,
    *,
    whole_words: bool = False,
) -> list[Candidate[WordConfig]]:
    """Return configs by words, of the tiles that move the least.

    Args:
        problem: the permutation of units.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take, by the alignment of both arrays.
        tiles_each: how many tiles there are, of those that store whole sectors, whole words, and
            of the others, of which threads can take words.
        whole_words: whether there are tiles that store whole words: estimates do not tell well
            where these are the fastest.
    """
    most, tiles = tiles_of_runs(problem, unit_bytes, _TILE_BYTES, _CTAS)
    sector = SECTOR_BYTES // unit_bytes
    group = sector if max_bytes == MAX_ACCESS_BYTES else 1
    words = {max(1, n // unit_bytes) for n in _WORDS if n <= max(max_bytes, unit_bytes)}
    whole = words - {1} if whole_words and not is_small(problem, unit_bytes) else set()
    if max_bytes == MAX_ACCESS_BYTES and not is_small(problem, unit_bytes):
        whole.add(sector)
    classes = [(1, ranked_tiles(problem, tiles, 1, unit_bytes, _threads, OF_WORDS))]
    for each in sorted(whole):
        overlapping = {t for tile in tiles for t in to_sectors(problem, tile, each, most)}
        in_order = ranked_tiles(problem, overlapping, each, unit_bytes, _threads, OF_WORDS)
        classes.append((each, in_order))
    found: list[Candidate[WordConfig]] = []
    # Any tile can be moved unit by unit.
    for choices in (words, {1}):
        for of_tiles, in_order in classes:
            looked_at: set[tuple[int, ...]] = set()
            # Of tiles that store whole words, it is those that are accessed.
            of_class = {of_tiles} if of_tiles in words - {1} else choices
            for tile in in_order:
                for word in sorted(of_class):
                    configs = _rough_configs(problem, tile, unit, unit_bytes, word, of_tiles, group)
                    found += _candidates(problem, configs, unit_bytes)
                    looked_at |= {config.tile for config in configs}
                if len(looked_at) == tiles_each:
                    break
        if found:
            break
    return found


def rank_words(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int, tiles_each: int
) -> list[tuple[WordConfig, Accesses]]:
    """Return the best config by words of each tile, and what it accesses, the best first.

    Arguments as of `word_candidates`.
    """
    best: dict[tuple[tuple[int, ...], int], tuple[WordConfig, Accesses]] = {}
    found = word_candidates(problem, unit, unit_bytes, max_bytes, tiles_each, whole_words=True)
    for config, counts in ranked(found):
        best.setdefault((config.tile, config.sector), (config, counts))
    return list(best.values())


def _candidates(
    problem: PermuteProblem, configs: Sequence[WordConfig], unit_bytes: int
) -> Iterator[Candidate[WordConfig]]:
    """Yield configs of a tile that are to have the pitches and lanes that meet least in banks."""
    without_conflicts = cache(lambda: _without_conflicts(problem, configs[0], unit_bytes))

    def work_out(group: int) -> tuple[WordConfig, Accesses]:
        config = replace(without_conflicts(), group=group)
        return config, count_words(problem, config, unit_bytes)

    for each in configs:
        least = count_words(problem, each, unit_bytes, at_least=True).cycles
        order = (each.tile, each.word, each.sector, each.group)
        yield Candidate(least, order, partial(work_out, each.group))


def to_sectors(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    sector: int,
    most: int,
    *,
    is_any: bool = False,
) -> Iterator[tuple[int, ...]]:
    """Yield tiles like one that store whole sectors of the output's rows.

    They are apart by whole sectors, if there are such.

    Args:
        problem: the permutation of units.
        tile: one that stores its own runs.
        sector: units of a sector.
        most: units of a tile.
        is_any: whether there are also tiles that are apart by parts of sectors in any case.
    """
    target = Side.of(problem, tile, is_source=False)
    first, inner = target.run[0], prod(tile[k] for k in target.run[1:])
    rows, grain = gcd(0, *target.strides_of_rows), sector // gcd(sector, inner)
    of_whole, of_any = (-(-(sector - n) // inner) for n in (gcd(sector, rows), 1))
    whole = {-(-tile[first] // grain) * grain, (tile[first] - of_whole) // grain * grain}

    def fitting(sizes: set[int]) -> list[tuple[int, ...]]:
        tiles = []
        for size in sizes:
            advance = steps_apart(size, inner, rows, sector)
            found = (*tile[:first], size, *tile[first + 1 :])
            # One that begins with sectors anyway needs no overlap, and no code for it.
            is_apart = advance < size < min(problem.modes[first].size, REREAD * advance)
            if is_apart and prod(found) <= most:
                tiles.append(found)
        return tiles

    found = fitting({n + of_whole for n in whole})
    yield from found
    if is_any or not found:
        yield from fitting({tile[first], tile[first] + of_any})


def ranked_tiles(
    problem: PermuteProblem,
    tiles: Iterable[tuple[int, ...]],
    sector: int,
    unit_bytes: int,
    threads_of: Callable[[PermuteProblem, Sequence[tuple[int, ...]], int], Any],
    prices: KindPrices,
    joined: int = 1,
) -> list[tuple[int, ...]]:
    """Return tiles in the order of what they move and how long they take, the least first.

    Args:
        problem: the permutation of units.
        tiles: the ones to choose from.
        sector: as of the config.
        unit_bytes: bytes of a unit.
        threads_of: returns the threads of a CTA with each tile, of so many bytes a unit.
        prices: of this kind of kernel.
        joined: as of `SquareConfig`.
    """
    found = list(tiles)
    if not found:
        return []
    threads = threads_of(problem, found, unit_bytes)
    cycles = count_roughly(problem, found, sector, threads, unit_bytes, prices, joined).cycles
    return [tile for _, tile in sorted(zip(cycles.tolist(), found, strict=True))]


def is_small(problem: PermuteProblem, unit_bytes: int) -> bool:
    """Return whether a tensor has so few tiles that it matters how long each one takes."""
    return prod(mode.size for mode in problem.modes) * unit_bytes < _SMALL_BYTES


def _threads(problem: PermuteProblem, tiles: Sequence[tuple[int, ...]], unit_bytes: int) -> Any:
    """Return the threads of a CTA with each tile."""
    import numpy as np

    each = _FEW_BYTES if is_small(problem, unit_bytes) else _THREAD_BYTES
    sizes = np.prod(tiles, axis=-1) * unit_bytes
    return np.array(_THREADS)[np.searchsorted([n * each for n in _THREADS[:-1]], sizes)]


def configs_of(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    word: int,
    sector: int,
    group: int = 1,
) -> Iterator[WordConfig]:
    """Yield the configs of a tile, if its threads keep constant distances.

    Their pitches and lanes are those that meet least in banks.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        word: units of a word.
        sector: as of the config.
        group: of a second config; 1 if there is none.
    """
    configs = _rough_configs(problem, tile, unit, unit_bytes, word, sector, group)
    for candidate in _candidates(problem, configs, unit_bytes):
        yield candidate.work_out()[0]


def _rough_configs(
    problem: PermuteProblem,
    tile: tuple[int, ...],
    unit: int,
    unit_bytes: int,
    word: int,
    sector: int,
    group: int,
) -> list[WordConfig]:
    """Return the configs of a tile by any pitches and lanes; arguments as of `configs_of`."""
    threads = int(_threads(problem, [tile], unit_bytes)[0])
    target = Side.of(problem, tile, is_source=False)
    pitches = _pitches(target, word, {})
    config = WordConfig(tile, threads, unit, word, pitches, sector=sector)
    source_rows, target_rows = sides_of(problem, config)
    if target_rows.advance < 1:
        return []
    ends = target_rows.ends
    if target_rows.whole < 1 or target_rows.units < ends:
        return []
    reading = reading_of(source_rows, config)
    written = {target_rows.whole, target_rows.stored}
    if reading is None or any(target_rows.traversal(n, threads) is None for n in written):
        return []
    most, digits = _MOST_BYTES, len(source_rows.side.run) - 1
    if (
        not source_rows.is_aligned
        and reading.counts[-1] > 1
        and (digits or threads == _THREADS[-1])
    ):
        most = _MOST_OF_ROWS >> digits
    if word > 1 and len(reading.steps) * word * unit_bytes > most:
        return []
    if ends and target_rows.traversal(ends, threads) is None:
        return []
    is_second = is_grouped(replace(target_rows, group=group), threads)
    return [config, replace(config, group=group)] if is_second else [config]


def _without_conflicts(problem: PermuteProblem, config: WordConfig, unit_bytes: int) -> WordConfig:
    """Return the config with the pitches and lanes that meet least in banks."""
    source, target = sides_of(problem, config)
    reading = reading_of(source, config)
    assert reading is not None
    threads = reading.threads[:-1]
    # What a warp takes of a row is half a line at least, which is what device memory is read in.
    most = WARP_THREADS * config.word * unit_bytes // HALF_LINE_BYTES
    together = [n for n in _LANES if n <= most]
    lanes = [(k, n) for n in together for k, count in enumerate(threads) if count % n == 0]
    step = config.word * max(1, BANK_BYTES // (unit_bytes * config.word))
    best, least = config, float("inf")
    for each in [(0, 1), *lanes]:
        more: dict[int, int] = {}
        found = replace(config, lanes=each)
        for k in reversed(target.side.outer):
            pitches = [
                _pitches(target.side, config.word, {**more, k: n * step}) for n in range(BANKS)
            ]
            counts = put_wavefronts(problem, found, unit_bytes, pitches)
            n = counts.index(min(counts))
            more[k] = n * step
            if counts[n] < least * _BETTER:
                best, least = replace(found, pitches=pitches[n]), counts[n]
            if least <= _FEW:
                return best
        if not target.side.outer:
            (count,) = put_wavefronts(problem, found, unit_bytes, [config.pitches])
            if count < least * _BETTER:
                best, least = found, count
    return best


def _pitches(target: Side, word: int, more: dict[int, int]) -> tuple[int, ...]:
    """Return pitches of the tile in the output's order that equal its strides modulo a word.

    Args:
        target: the tile in the output.
        word: units of a word.
        more: what is added to the pitch of a mode, a multiple of a word.
    """
    strides, pitches = target.strides, [0] * len(target.tile)
    end = 0
    for k in reversed(target.order):
        if k in target.run:
            pitches[k] = strides[k]
        else:
            pitches[k] = end + (strides[k] - end) % word + more.get(k, 0)
        end = pitches[k] * target.tile[k]
    return tuple(pitches)
