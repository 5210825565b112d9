"""The heuristic: which tile a CTA transposes, which strip it copies.

A large tile has long lines in the input and in the output; small tiles give every multiprocessor
something to do. So for each element size the tiles are ordered by size, and the first one is chosen
that makes enough CTAs. All were measured on an H200: many threads with few elements each were
faster than wider vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from lego_mlir.kernels.permute.by_gathers.config import GatherConfig
from lego_mlir.kernels.permute.by_gathers.heuristic import gather_candidates, rank_gathers
from lego_mlir.kernels.permute.by_squares.config import SquareConfig
from lego_mlir.kernels.permute.by_squares.heuristic import (
    joined_candidates,
    rank_squares,
    square_candidates,
)
from lego_mlir.kernels.permute.by_words.config import WordConfig
from lego_mlir.kernels.permute.by_words.heuristic import rank_words, word_candidates
from lego_mlir.kernels.permute.candidates import cheapest
from lego_mlir.kernels.permute.config import CopyConfig, TileConfig
from lego_mlir.kernels.permute.costs.accesses import Accesses, prices_of
from lego_mlir.kernels.permute.costs.counts import (
    count_copy,
    count_runs,
    count_tiles_of_two_modes,
)
from lego_mlir.kernels.permute.problem import PermuteProblem, count_tiles
from lego_mlir.kernels.permute.run_heuristic import choose_runs
from lego_mlir.kernels.permute.runs import RunConfig

_Earlier: TypeAlias = TileConfig | CopyConfig | RunConfig
Config: TypeAlias = _Earlier | WordConfig | SquareConfig | GatherConfig


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A tile for grids of at least `ctas`, and the widest vectors that it is accessed by."""

    ctas: int
    down: int
    across: int
    store_width: int
    load_width: int


_ALIGNED = {
    1: (
        _Candidate(1024, 64, 256, 4, 8),
        _Candidate(128, 64, 128, 4, 4),
        _Candidate(0, 64, 64, 4, 4),
    ),
    2: (
        _Candidate(2048, 128, 128, 4, 8),
        _Candidate(2048, 32, 128, 4, 4),
        _Candidate(512, 32, 64, 4, 4),
        _Candidate(0, 32, 32, 4, 2),
    ),
    4: (_Candidate(512, 64, 64, 2, 4), _Candidate(0, 16, 32, 2, 2)),
    8: (_Candidate(0, 32, 32, 2, 2),),
}
"""Configs by the bytes of an element, for inputs and outputs that are accessed by vectors."""

_UNALIGNED = {
    1: TileConfig(64, 64, thread_rows=4, load_width=1, store_width=4, thread_blocks=2),
    2: TileConfig(64, 64, thread_rows=4, load_width=1, store_width=4, thread_blocks=2),
    4: TileConfig(64, 64, thread_rows=2, load_width=1, store_width=2, thread_blocks=4),
    8: TileConfig(32, 32, thread_rows=2, load_width=1, store_width=2, thread_blocks=2),
}
"""For inputs whose rows are not aligned, which are loaded element by element."""

_SKEWED = {
    1: TileConfig(128, 32, 8, load_width=1, store_width=4, thread_blocks=2, skew_span=4),
    2: TileConfig(128, 32, 8, load_width=1, store_width=2, thread_blocks=2, skew_span=2),
    4: TileConfig(64, 64, 2, load_width=1, store_width=2, thread_blocks=4, skew_span=4),
}
"""For outputs whose rows are not aligned, and which are stored by vectors nevertheless."""

_WORDS, _SQUARES, _GATHERS = 6, 5, 3
"""So many kernels by words, squares and gathers are ranked, for a tuner: of 200 permutations on an
H200 the fastest was any of them (bench/results/permute_choices.jsonl)."""

_GATHERED = 0.95
"""Words are gathered where that is estimated to take so much of the time of others, at most: their
estimates are off by 13 % (bench/results/permute_gathers.jsonl)."""

_JOINED = {1: 0.92, 2: 0.95, 4: 0.97}
"""Tiles begin anywhere in several modes where that is estimated to take so much of the time of
words and other squares, at most, by the bytes of a unit: by so much more are estimates of these too
high (bench/results/permute_joined.jsonl)."""

_TILES, _MORE_TILES = 2, 4
"""So many tiles by words are looked at in full, of those that store whole sectors and of the
others: to choose a kernel, and to rank some."""

_UNIT_BYTES = 8
"""The largest unit that stays together: in shared memory it is accessed by one lane."""

_COPY_THREADS = 256
"""Threads of a CTA that copies."""


def choose_tile(problem: PermuteProblem, element_bytes: int, max_width: int) -> TileConfig:
    """Return the config of tiles for a permutation that is not a copy.

    Args:
        problem: the permutation.
        element_bytes: bytes of an element.
        max_width: elements that one access may take, by the alignment of both arrays.
    """
    load_width, store_width = problem.widths(max_width)
    skewed = _SKEWED.get(element_bytes)
    if not problem.is_open and store_width == 1 and skewed and skewed.skew_span <= max_width:
        return skewed
    if min(load_width, store_width) == 1:
        config = _UNALIGNED[element_bytes]
        return replace(config, store_width=min(store_width, config.thread_rows))
    chosen = next(c for c in _ALIGNED[element_bytes] if _count_ctas(problem, c) >= c.ctas)
    load_width = min(load_width, chosen.load_width)
    return TileConfig(
        chosen.down,
        chosen.across,
        chosen.store_width,
        load_width,
        min(store_width, chosen.store_width),
        # A thread has the same number of elements, however wide its vectors are.
        chosen.load_width // load_width,
    )


def choose_copy(problem: PermuteProblem, width: int) -> CopyConfig:
    """Return the config of a copy: one access a thread, of several rows if they are short.

    Args:
        problem: a permutation that is a copy.
        width: elements that one access may take.
    """
    columns = min(_COPY_THREADS, count_tiles(problem.typical.read.size, width))
    rows = _COPY_THREADS // columns if problem.others else 1
    return CopyConfig(rows, columns, width)


def choose_config(problem: PermuteProblem, element_bytes: int, max_width: int) -> Config:
    """Return the config of a permutation: of the kinds that serve it the one that costs the least.

    Args:
        problem: the permutation.
        element_bytes: bytes of an element.
        max_width: elements that one access may take, by the alignment of both arrays.
    """
    configs = candidates(problem, element_bytes, max_width)
    if problem.is_open:
        return configs["vector"]
    found: list[tuple[Config, Accesses]] = [
        (config, _count(problem, config, element_bytes)) for config in configs.values()
    ]
    units = _in_units(problem, element_bytes, max_width)
    least = min(accesses.cycles for _, accesses in found)
    if (squares := cheapest(square_candidates(*units), least)) is not None:
        found.append(squares)
        least = squares[1].cycles
    if (words := cheapest(word_candidates(*units, _TILES), least)) is not None:
        found.append(words)
        least = words[1].cycles
    most = least * prices_of(_JOINED, units[2])
    if (gathers := cheapest(gather_candidates(*units), least * _GATHERED)) is not None:
        found.append(gathers)
        most = min(most, gathers[1].cycles)
    if (joined := cheapest(joined_candidates(*units), most)) is not None:
        found.append(joined)
    return min(found, key=lambda each: each[1].cycles)[0]


def ranked(problem: PermuteProblem, element_bytes: int, max_width: int) -> list[Config]:
    """Return configs to time: the chosen one, and the best of each kind by their estimates.

    Of squares the best of each way to store rows is one.

    Args:
        problem: the permutation.
        element_bytes: bytes of an element.
        max_width: elements that one access may take, by the alignment of both arrays.
    """
    found: list[Config] = [choose_config(problem, element_bytes, max_width)]
    found += candidates(problem, element_bytes, max_width).values()
    if not problem.is_open:
        units = _in_units(problem, element_bytes, max_width)
        words, squares = rank_words(*units, _MORE_TILES), rank_squares(*units)
        found += [config for config, _ in words[:_WORDS]]
        found += [config for config, _ in squares[:_SQUARES]]
        found += {config.sector: config for config, _ in reversed(squares)}.values()
        found += [config for config, _ in rank_gathers(*units)[:_GATHERS]]
    return list(dict.fromkeys(found))


def candidates(problem: PermuteProblem, element_bytes: int, max_width: int) -> dict[str, _Earlier]:
    """Return the configs that serve a permutation: a copy or tiles of two modes, and runs.

    Runs are of known sizes.
    """
    if problem.is_copy:
        width = min(problem.widths(max_width))
        found: dict[str, _Earlier] = {"vector": choose_copy(problem, width)}
    else:
        found = {"vector": choose_tile(problem, element_bytes, max_width)}
    if not problem.is_open:
        found["runs"] = choose_runs(*_in_units(problem, element_bytes, max_width))
    return found


def by_words(
    problem: PermuteProblem, element_bytes: int, max_width: int
) -> tuple[WordConfig, Accesses]:
    """Return the config by words and what it accesses; arguments as of a choice."""
    best = cheapest(word_candidates(*_in_units(problem, element_bytes, max_width), _TILES))
    assert best is not None
    return best


def by_squares(
    problem: PermuteProblem, element_bytes: int, max_width: int
) -> tuple[SquareConfig, Accesses] | None:
    """Return the config by squares and what it accesses, if there is one; arguments as above."""
    return cheapest(square_candidates(*_in_units(problem, element_bytes, max_width)))


def by_gathers(
    problem: PermuteProblem, element_bytes: int, max_width: int
) -> tuple[GatherConfig, Accesses] | None:
    """Return the config by gathers and what it accesses, if there is one; arguments as above."""
    return cheapest(gather_candidates(*_in_units(problem, element_bytes, max_width)))


def _in_units(
    problem: PermuteProblem, element_bytes: int, max_width: int
) -> tuple[PermuteProblem, int, int, int]:
    """Return the permutation of units, their elements and bytes, and the bytes of an access."""
    unit = _unit(problem, element_bytes, max_width)
    return problem.in_units(unit), unit, unit * element_bytes, max_width * element_bytes


def _unit(problem: PermuteProblem, element_bytes: int, max_width: int) -> int:
    """Return how many elements stay together in both memories."""
    if not problem.is_copy:
        return 1
    return min(*problem.widths(max_width), max(1, _UNIT_BYTES // element_bytes))


def _count(problem: PermuteProblem, config: _Earlier, element_bytes: int) -> Accesses:
    """Return the accesses of a copy, of tiles of two modes, or of runs."""
    match config:
        case RunConfig():
            units = problem.in_units(config.unit)
            return count_runs(units, config, config.unit * element_bytes)
        case TileConfig():
            return count_tiles_of_two_modes(problem, config, element_bytes)
        case CopyConfig():
            return count_copy(problem, config, element_bytes)


def _count_ctas(problem: PermuteProblem, tile: _Candidate) -> int:
    problem = problem.typical
    outer = prod(mode.size for mode in problem.others)
    down = count_tiles(problem.written.size, tile.down)
    return outer * down * count_tiles(problem.read.size, tile.across)
