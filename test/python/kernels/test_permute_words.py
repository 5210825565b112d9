"""Permutations by words wherever runs begin: results, faults, and estimates of their costs."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import gcd, prod

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from permutation_checks import DTYPES, permutations
from permutation_checks import check as check_kernel

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, TensorType
from lego_mlir.hardware.limits import SECTOR_BYTES
from lego_mlir.kernels import permute, transpose
from lego_mlir.kernels.permute.by_words.config import WordConfig, sides_of
from lego_mlir.kernels.permute.by_words.heuristic import configs_of
from lego_mlir.kernels.permute.by_words.kernel import word_permutation
from lego_mlir.kernels.permute.by_words.traversal import traverse
from lego_mlir.kernels.permute.costs.counts import count_runs, count_words
from lego_mlir.kernels.permute.heuristic import by_squares, by_words, candidates, choose_config
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem
from lego_mlir.kernels.permute.runs import RunConfig


def problem_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> PermuteProblem:
    target = tuple(shape[k] for k in axes)
    found = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*target)))
    assert found is not None
    return found


check = partial(check_kernel, variant="words")


@given(permutations(), st.sampled_from(list(DTYPES)))
@settings(max_examples=25)
def test_any_permutation(drawn: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    check(*drawn, dtype)


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        ("i8", (131, 97), (1, 0)),
        ("f16", (50, 7, 61), (2, 1, 0)),
        ("i8", (7, 11, 5, 2, 3), (3, 2, 0, 4, 1)),
        ("i8", (1, 40, 3), (1, 0, 2)),
        ("i8", (3,), (0,)),
    ],
    ids=["odd rows and columns", "few in between", "short runs", "copy", "less than a word"],
)
@pytest.mark.parametrize("order", ["late", "early"])
def test_runs_that_begin_anywhere(
    dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], order: str
) -> None:
    check(shape, axes, dtype, order)


def word_kernel(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, config: WordConfig
) -> Kernel:
    source, target = (OrderBy(Row(*sizes)) for sizes in (shape, [shape[k] for k in axes]))
    a, b = TensorType(dtype, source, 16), TensorType(dtype, target, 16)
    reference = f"permute({', '.join(map(str, axes))})"
    return word_permutation("permute", problem_of(shape, axes), config, a, b, reference)


@st.composite
def whole_sectors(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, WordConfig]:
    """Draw a permutation, a type, and a config of any tile that stores whole sectors or words."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    size = DTYPES[dtype]().itemsize
    shape, axes = draw(permutations())
    problem = problem_of(shape, axes)
    tile = tuple(draw(st.integers(1, mode.size)) for mode in problem.modes)
    word = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n * size <= 8]))
    sector = draw(st.sampled_from([word, SECTOR_BYTES // size]))
    config = next(configs_of(problem, tile, 1, size, word, sector), None)
    assume(config is not None)
    assert config is not None
    return shape, axes, dtype, config


@st.composite
def grouped_words(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, WordConfig]:
    """Draw a permutation, a type, and a config of any tile that is stored sector by sector."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    size = DTYPES[dtype]().itemsize
    shape, axes = draw(permutations())
    problem = problem_of(shape, axes)
    tile = tuple(draw(st.integers(1, mode.size)) for mode in problem.modes)
    word = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n * size <= 8]))
    configs = list(configs_of(problem, tile, 1, size, word, 1, SECTOR_BYTES // size))
    assume(len(configs) == 2)
    return shape, axes, dtype, configs[1]


@given(grouped_words())
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_rows_that_are_stored_sector_by_sector(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, WordConfig],
) -> None:
    shape, axes, dtype, config = drawn
    check_kernel(shape, axes, dtype, made=word_kernel(shape, axes, dtype, config))


@given(whole_sectors())
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_tiles_that_store_whole_sectors(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, WordConfig],
) -> None:
    """Of any sizes: also of fewer steps from tile to tile than a sector has."""
    shape, axes, dtype, config = drawn
    check_kernel(shape, axes, dtype, made=word_kernel(shape, axes, dtype, config))


def test_only_ends_of_rows_are_stored_by_parts_of_sectors() -> None:
    shape, size = (300, 64), 300 * 64
    problem = problem_of(shape, (1, 0))
    stored = {}
    for sector, tile in ((1, (64, 96)), (32, (64, 127))):
        (config,) = configs_of(problem, tile, 1, 1, 4, sector)
        (costs,) = word_kernel(shape, (1, 0), "i8", config).run(device="sim", costs=True).costs
        stores = [c for c in costs.memory if str(c.instruction).startswith("st.global")]
        assert sum(cost.bytes for cost in stores) == size
        stored[sector] = sum(cost.sectors for cost in stores)
    # Each row has two ends, which are accessed by themselves; of other tiles each row has.
    assert size // 32 < stored[32] <= size // 32 + 3 * 64 < stored[1]


@pytest.mark.parametrize("dtype", ["i8", "f16", "f32"])
def test_sectors_that_stores_touch_are_estimated(dtype: str) -> None:
    """Of rows that begin anywhere, in tiles that are not cut; whole sectors save some."""
    size = DTYPES[dtype]().itemsize
    shape, tile, group = (222, 64), (32, 111), SECTOR_BYTES // size
    problem, counted = problem_of(shape, (1, 0)), []
    for config in configs_of(problem, tile, 1, size, 8 // size, 1, group):
        (costs,) = word_kernel(shape, (1, 0), dtype, config).run(device="sim", costs=True).costs
        stores = [c for c in costs.memory if str(c.instruction).startswith("st.global")]
        counted.append(sum(cost.sectors for cost in stores) * SECTOR_BYTES / (prod(shape) * size))
        assert count_words(problem, config, size).stored == pytest.approx(counted[-1], rel=0.08)
    without, grouped = counted
    assert 1 < grouped < 0.97 * without


def test_tiles_that_store_whole_words_have_no_ends_but_those_of_rows() -> None:
    shape, tile, size = (300, 64), (64, 131), 300 * 64
    config = next(iter(configs_of(problem_of(shape, (1, 0)), tile, 1, 1, 4, 4)))
    (costs,) = word_kernel(shape, (1, 0), "i8", config).run(device="sim", costs=True).costs
    stores = [c for c in costs.memory if str(c.instruction).startswith("st.global")]
    assert sum(cost.bytes for cost in stores) == size
    by_bytes = [cost for cost in stores if cost.bytes == cost.lanes]
    assert sum(cost.bytes for cost in by_bytes) <= 2 * 3 * 64  # of 64 rows, not of 3 tiles each


def test_tiles_are_not_so_small_that_launches_of_ctas_take_longer() -> None:
    """Tiles of 1,394 bytes took 438 us on an H200, of 4,182 bytes 248 us."""
    config = choose_config(problem_of((2, 139, 435, 4182), (1, 2, 0, 3)), 1, 16)
    assert isinstance(config, WordConfig)
    assert prod(config.tile) * config.unit > 2 * 1394


def test_rows_that_begin_with_sectors_are_not_grouped() -> None:
    problem = problem_of((256, 64), (1, 0))
    assert len(list(configs_of(problem, (64, 128), 1, 1, 4, 1, SECTOR_BYTES))) == 1


def test_addresses_that_are_aligned_to_elements_only() -> None:
    check((33, 47), (1, 0), "i8", alignment=1)


def test_no_access_of_global_memory_takes_less_than_a_word_where_rows_begin_with_one() -> None:
    (costs,) = permute((96, 160), (1, 0), "i8", variant="words").run(device="sim", costs=True).costs
    accesses = [row for row in costs.memory if row.space == "global"]
    assert accesses
    assert all(row.bytes >= 4 * row.lanes for row in accesses)
    assert sum(row.bytes for row in accesses) == 2 * 96 * 160


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 40)), max_size=3),
    st.integers(1, 90),
    st.integers(1, 12),
    st.sampled_from([1, 2, 4, 8]),
)
def test_threads_take_each_word_once_and_keep_their_phase(
    rows: list[tuple[int, int]], words: int, multiple: int, period: int
) -> None:
    extents, strides = [n for n, _ in rows], [s for _, s in rows]
    found = traverse(extents, strides, words, multiple, period, 64)
    if found is None:
        least = prod(min(n, period // gcd(period, s)) for n, s in rows)
        assert 64 // least < min(words, multiple)
        return
    assert found.count <= 64
    first, column = found.place(np.arange(found.count))
    start = np.array(np.broadcast_arrays(*first, column))
    sizes, taken = (*extents, words), []
    for conditions, steps in found.grouped():
        for step in steps:
            is_in = np.ones(found.count, bool)
            for k, distance in conditions.items():
                is_in &= start[k] + distance < sizes[k]
            taken.append((start + np.array(step)[:, None])[:, is_in])
            *rows_apart, piece = step
            assert sum(d * s for d, s in zip(rows_apart, strides, strict=True)) % period == 0
            assert piece % multiple == 0
    places = np.concatenate(taken, axis=1)
    assert sorted(map(tuple, places.T)) == list(product(*map(range, sizes)))


@given(permutations(), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=30, deadline=None)
def test_shared_memory_has_the_phase_of_the_output(
    drawn: tuple[tuple[int, ...], tuple[int, ...]], size: int
) -> None:
    """And no two units of a tile have one place."""
    problem = problem_of(*drawn)
    config, _ = by_words(problem, size, 16 // size)
    problem = problem.in_units(config.unit)
    _, target = sides_of(problem, config)
    for k in target.side.order:
        assert (config.pitches[k] - target.side.strides[k]) % config.word == 0
    index = np.indices(config.tile)
    assert len(np.unique(np.tensordot(config.pitches, index, 1))) == prod(config.tile)


@pytest.mark.parametrize(
    ("shape", "axes", "size"),
    [((32, 44, 70), (2, 1, 0), 1), ((96, 131), (1, 0), 1), ((64, 3, 100), (2, 0, 1), 2)],
)
def test_costs_are_those_of_the_simulator(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int
) -> None:
    """Of tiles that are not cut; what is not counted are lanes that have nothing to do."""
    dtype = {1: "i8", 2: "f16"}[size]
    problem = problem_of(shape, axes)
    elements = prod(shape) / 32
    runs = candidates(problem, size, 16 // size)["runs"]
    assert isinstance(runs, RunConfig)
    words, _ = by_words(problem, size, 16 // size)
    for variant, estimate in (
        ("runs", count_runs(problem, runs, size)),
        ("words", count_words(problem, words, size)),
    ):
        (costs,) = permute(shape, axes, dtype, variant=variant).run(device="sim", costs=True).costs
        requests = sum(row.requests for row in costs.memory if row.space == "global") / elements
        wavefronts = sum(row.wavefronts for row in costs.memory) / elements
        assert estimate.requests == pytest.approx(requests, rel=0.25)
        assert estimate.wavefronts > wavefronts * 0.7
        # Runs may be stored to shared memory by vectors, where units of a thread are neighbours.
        assert variant == "runs" or estimate.wavefronts < wavefronts * 1.25


@pytest.mark.parametrize(
    ("shape", "axes", "size", "fastest"),
    [
        # Threads of runs of a prime number of rows have nothing to do.
        ((67, 719, 1862), (1, 2, 0), 4, "words"),
        # The tile is cut, and what it does not have is not moved.
        ((2, 24, 19, 31, 1320), (2, 0, 3, 4, 1), 1, "vector"),
        # Other tiles store parts of sectors.
        ((141, 6, 323, 153, 12), (3, 0, 4, 1, 2), 1, "words"),
        ((46, 2, 4315, 172), (3, 0, 2, 1), 2, "words"),
        # Places in rows are divided for every byte.
        ((11, 176, 1401, 12, 2), (4, 2, 3, 0, 1), 1, "words"),
        ((2357, 9, 234), (2, 1, 0), 2, "vector"),
    ],
)
def test_the_heuristic_takes_what_was_fastest(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int, fastest: str
) -> None:
    """Of these three on an H200: by 15 % at least, the last one by 4 % (results/moves.jsonl).

    Squares were not measured beside them; they are the only other kernel that may be taken.
    """
    problem = problem_of(shape, axes)
    configs = dict(candidates(problem, size, 16 // size))
    words, _ = by_words(problem, size, 16 // size)
    squares = by_squares(problem, size, 16 // size)
    taken = {**configs, "words": words}[fastest]
    assert choose_config(problem, size, 16 // size) in (taken, squares and squares[0])


def test_the_heuristic_keeps_what_is_as_fast_as_a_copy() -> None:
    for shape, size in [((4096, 4096), 1), ((8192, 8192), 2)]:
        chosen = choose_config(problem_of(shape, (1, 0)), size, 16 // size)
        assert not isinstance(chosen, WordConfig)


def test_sizes_that_only_the_launch_knows_are_refused() -> None:
    with pytest.raises(LegoError, match="'words' is for sizes that are known before the launch"):
        transpose(None, 96, variant="words")
