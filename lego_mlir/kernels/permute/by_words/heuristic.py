"""The tile, the pitches and the threads of a permutation by words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from lego_mlir.hardware.limits import BANK_BYTES, BANKS, HALF_LINE_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.access_costs import count_words, put_wavefronts
from lego_mlir.kernels.permute.accesses import Accesses
from lego_mlir.kernels.permute.by_words.config import WordConfig, reading_of, sides_of
from lego_mlir.kernels.permute.problem import PermuteProblem
from lego_mlir.kernels.permute.run_heuristic import cost_of_tile, tiles_of_runs
from lego_mlir.kernels.permute.runs import Side

_WORDS = (4, 8)
"""The bytes of words that are looked at."""

_TILES = 3
"""So many tiles are looked at in full, those that cost the least by their runs."""

_THREADS = (64, 128, 256, 512)
"""The numbers of threads."""

_THREAD_BYTES, _MOST_BYTES = 96, 128
"""Bytes that a thread loads, about and at most, where there may be more threads."""

_LANES = (2, 4, 8)
"""Rows that neighbouring threads may be on."""

_BETTER, _FEW = 0.95, 1.1
"""Lanes are on several rows where that saves wavefronts, and pitches looked for until these."""


def choose_words(
    problem: PermuteProblem, unit: int, unit_bytes: int, max_bytes: int
) -> tuple[WordConfig, Accesses]:
    """Return the config by words, and what it accesses.

    Args:
        problem: the permutation of units.
        unit: elements of a unit.
        unit_bytes: bytes of a unit.
        max_bytes: bytes that one access may take, by the alignment of both arrays.
    """
    most, tiles = tiles_of_runs(problem, unit_bytes)
    ranked = sorted(tiles, key=lambda tile: (cost_of_tile(problem, tile, unit_bytes, most), tile))
    words = {max(1, n // unit_bytes) for n in _WORDS if n <= max(max_bytes, unit_bytes)}
    # Any tile can be moved unit by unit.
    for choices in (sorted(words), [1]):
        found = []
        for tile in ranked[:_TILES]:
            for word in choices:
                for config in _configs(problem, tile, unit, unit_bytes, word):
                    counts = count_words(problem, config, unit_bytes)
                    cost = counts.cycles * cost_of_tile(problem, tile, unit_bytes, most)
                    found.append((cost, config.tile, config.word, config, counts))
        if found:
            break
    *_, config, counts = min(found, key=lambda each: each[:3])
    return config, counts


def _configs(
    problem: PermuteProblem, tile: tuple[int, ...], unit: int, unit_bytes: int, word: int
) -> Iterator[WordConfig]:
    """Yield the config of a tile, if its threads keep constant distances."""
    size = prod(tile) * unit_bytes
    threads = next((n for n in _THREADS if size <= n * _THREAD_BYTES), _THREADS[-1])
    target = Side.of(problem, tile, is_source=False)
    config = WordConfig(tile, threads, unit, word, _pitches(target, word, {}))
    source_rows, target_rows = sides_of(problem, config)
    ends = 0 if target_rows.is_aligned else 2 * (word - 1)
    if target_rows.whole < 1 or target_rows.units < ends:
        return
    writing = target_rows.traversal(target_rows.whole, threads)
    reading = reading_of(source_rows, config)
    if reading is None or writing is None:
        return
    if word > 1 and len(reading.steps) * word * unit_bytes > _MOST_BYTES:
        return
    if ends and target_rows.traversal(ends, threads) is None:
        return
    yield _without_conflicts(problem, config, unit_bytes)


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
