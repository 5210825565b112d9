"""Permutations by tiles of whole runs: any shape, and what the heuristic takes for it."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from permutation_checks import DTYPES, permutations
from permutation_checks import check as check_kernel

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import permute, transpose
from lego_mlir.kernels.permute.by_words.config import WordConfig
from lego_mlir.kernels.permute.config import CopyConfig
from lego_mlir.kernels.permute.heuristic import choose_config
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem
from lego_mlir.kernels.permute.run_heuristic import choose_runs, moved
from lego_mlir.kernels.permute.runs import RunConfig
from lego_mlir.kernels.permute.walks import Walk


def problem_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> PermuteProblem:
    target = tuple(shape[k] for k in axes)
    found = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*target)))
    assert found is not None
    return found


check = partial(check_kernel, variant="runs")


@given(permutations(), st.sampled_from(list(DTYPES)))
@settings(max_examples=25)
def test_any_permutation(drawn: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    check(*drawn, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 3, 32, 33), (0, 2, 3, 1)), ((2, 40, 20, 3), (0, 3, 1, 2)), ((300, 5), (1, 0))],
    ids=["to channels last", "to channels first", "few columns"],
)
def test_short_dimensions(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    check(shape, axes, dtype)


@pytest.mark.parametrize("dtype", ["i8", "f16"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((301, 299), (1, 0)), ((50, 7, 131), (2, 1, 0)), ((9, 40, 6), (1, 0, 2)), ((3,), (0,))],
    ids=["odd rows and columns", "few in between", "units of several elements", "less than a word"],
)
def test_runs_that_begin_anywhere(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str
) -> None:
    check(shape, axes, dtype)


@given(st.lists(st.integers(1, 9), max_size=3), st.integers(1, 300), st.integers(1, 128))
def test_a_walk_takes_each_vector_once(outer: list[int], run: int, most: int) -> None:
    walk = Walk.of([*outer, run], most)
    threads = walk.threads(most)
    assert threads <= max(most, 1)
    found = []
    for thread in range(threads):
        start = walk.start(thread, threads, most)
        steps = walk.whole_steps(most) + (walk.last_steps(most) if thread < walk.left(most) else [])
        found += [tuple(i + d for i, d in zip(start, step, strict=True)) for step in steps]
    assert sorted(found) == list(product(*(range(n) for n in (*outer, run))))


def test_addresses_that_are_aligned_to_elements_only() -> None:
    check((64, 96), (1, 0), "i8", alignment=1)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_heuristic_takes_runs_where_a_dimension_is_short(size: int) -> None:
    problem = problem_of((32, 3, 256, 256), (0, 2, 3, 1))
    config = choose_config(problem, size, 16 // size)
    assert isinstance(config, RunConfig | WordConfig)  # by elements, or by words
    assert moved(problem, config.tile, size) < 1.1


def test_the_heuristic_keeps_tiles_of_two_modes() -> None:
    assert not isinstance(choose_config(problem_of((4096, 4096), (1, 0)), 4, 4), RunConfig)


@pytest.mark.parametrize(
    ("shape", "axes", "size"),
    [((328, 2, 5, 1692), (2, 0, 1, 3), 8), ((318, 2, 6840), (1, 0, 2), 4)],
)
def test_long_aligned_rows_are_copied(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int
) -> None:
    """By runs of a part of a row both took 1.1 times as long on an H200."""
    assert isinstance(choose_config(problem_of(shape, axes), size, 16 // size), CopyConfig)


@given(permutations(), st.sampled_from([1, 2, 4, 8]))
def test_tiles_fit_shared_memory(drawn: tuple[tuple[int, ...], tuple[int, ...]], size: int) -> None:
    config = choose_runs(problem_of(*drawn), 1, size, 16)
    assert config.units * size <= 1 << 15


def test_halves_of_lines_count() -> None:
    """A column of 4 bytes reads 64 bytes for each element, and a row what it has."""
    problem = problem_of((1024, 1024), (1, 0))
    assert moved(problem, (1, 1024), 4) == pytest.approx((16 + 1) / 2)  # (columns, rows)
    assert moved(problem, (1024, 1), 4) == pytest.approx((1 + 8) / 2)
    assert moved(problem, (64, 64), 4) == pytest.approx(1)


def test_an_unknown_variant() -> None:
    with pytest.raises(LegoError, match="no variant 'rows'") as error:
        permute((4, 4), (1, 0), variant="rows")
    assert "runs" in str(error.value.hint)
    with pytest.raises(LegoError, match="no variant"):
        transpose(4, 4, variant="rows")
