"""Permutations by gathers: results, faults, and estimates of their costs."""

from __future__ import annotations

from functools import partial
from math import prod

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
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig, sides_of
from lego_mlir.kernels.permute.by_gathers.costs import count_gathers
from lego_mlir.kernels.permute.by_gathers.heuristic import config_of
from lego_mlir.kernels.permute.by_gathers.kernel import gather_permutation
from lego_mlir.kernels.permute.heuristic import by_gathers, choose_config
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem
from lego_mlir.kernels.permute.runs import Side


def problem_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> PermuteProblem:
    target = tuple(shape[k] for k in axes)
    found = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*target)))
    assert found is not None
    return found


check = partial(check_kernel, variant="gathers")


@given(permutations(), st.sampled_from(list(DTYPES)))
@settings(max_examples=20)
def test_any_permutation(drawn: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    check(*drawn, dtype)


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        ("i8", (131, 97), (1, 0)),
        ("i8", (7, 11, 5, 2, 3), (3, 2, 0, 4, 1)),
        ("i8", (3,), (0,)),
    ],
    ids=["odd rows and columns", "short runs", "less than a word"],
)
@pytest.mark.parametrize("order", ["late", "early"])
def test_copies_that_end_late_or_early(
    dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], order: str
) -> None:
    check(shape, axes, dtype, order)


def gather_kernel(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, config: GatherConfig
) -> Kernel:
    source, target = (OrderBy(Row(*sizes)) for sizes in (shape, [shape[k] for k in axes]))
    a, b = TensorType(dtype, source, 16), TensorType(dtype, target, 16)
    reference = f"permute({', '.join(map(str, axes))})"
    return gather_permutation("permute", problem_of(shape, axes), config, a, b, reference)


@st.composite
def whole_sectors(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, GatherConfig]:
    """Draw a permutation, a type, and a config of any tile that stores whole sectors."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    size = DTYPES[dtype]().itemsize
    shape, axes = draw(permutations())
    problem = problem_of(shape, axes)
    tile = tuple(draw(st.integers(1, mode.size)) for mode in problem.modes)
    first, last = (Side.of(problem, tile, is_source=s).run[0] for s in (True, False))
    assume(first != last)
    load = draw(st.sampled_from([n for n in (1, 2, 4, 8, 16) if n * size <= 16]))
    word = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n * size <= 8]))
    config = config_of(problem, tile, 1, size, load, word, SECTOR_BYTES // size)
    assume(config is not None)
    assert config is not None
    return shape, axes, dtype, config


@given(whole_sectors())
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_tiles_that_store_whole_sectors(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, GatherConfig],
) -> None:
    """Of any sizes: also of fewer steps from tile to tile than a sector has."""
    shape, axes, dtype, config = drawn
    check_kernel(shape, axes, dtype, made=gather_kernel(shape, axes, dtype, config))


def test_addresses_that_are_aligned_to_elements_only() -> None:
    check((33, 47), (1, 0), "i8", alignment=1)


@given(permutations(), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=20, deadline=None)
def test_shared_memory_has_the_phase_of_the_input(
    drawn: tuple[tuple[int, ...], tuple[int, ...]], size: int
) -> None:
    """And no word of a row that is copied lies where another row has units."""
    problem = problem_of(*drawn)
    config, _ = by_gathers(problem, size, 16 // size)
    problem = problem.in_units(config.unit)
    source, _ = sides_of(problem, config)
    for k in source.side.order:
        assert (config.pitches[k] - source.side.strides[k]) % config.load == 0
    outer = [config.tile[k] for k in source.side.outer]
    rows = np.tensordot([config.pitches[k] for k in source.side.outer], np.indices(outer), 1)
    least = source.units if source.is_aligned else source.touched * config.load
    assert (np.diff(np.sort(rows, axis=None)) >= least).all()


@pytest.mark.parametrize(
    ("shape", "axes", "size"), [((32, 44, 70), (2, 1, 0), 1), ((64, 3, 100), (2, 0, 1), 2)]
)
def test_costs_are_those_of_the_simulator(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int
) -> None:
    """Of tiles that are not cut; what is not counted are lanes that have nothing to do."""
    dtype = {1: "i8", 2: "f16"}[size]
    problem = problem_of(shape, axes)
    config, _ = by_gathers(problem, size, 16 // size)
    estimate = count_gathers(problem.in_units(config.unit), config)
    (costs,) = permute(shape, axes, dtype, variant="gathers").run(device="sim", costs=True).costs
    warps = prod(shape) / 32
    requests = sum(row.requests for row in costs.memory if row.space == "global") / warps
    assert estimate.requests == pytest.approx(requests, rel=0.3)


@pytest.mark.parametrize(
    ("shape", "axes", "is_fastest"),
    [
        ((2479, 127, 15), (1, 0, 2), True),
        ((1633, 28, 319), (1, 0, 2), True),
        ((84, 7, 6989, 2), (1, 3, 0, 2), True),
        ((2870, 291, 177, 2), (0, 3, 1, 2), False),
        ((746, 435, 241, 6), (0, 3, 2, 1), False),
    ],
)
def test_the_heuristic_takes_what_was_fastest(
    shape: tuple[int, ...], axes: tuple[int, ...], is_fastest: bool
) -> None:
    """Of bytes on an H200, by 15 % at least."""
    config = choose_config(problem_of(shape, axes), 1, 16)
    assert isinstance(config, GatherConfig) == is_fastest


def test_sizes_that_only_the_launch_knows_are_refused() -> None:
    with pytest.raises(LegoError, match="'gathers' is for sizes that are known before the launch"):
        transpose(None, 96, variant="gathers")
