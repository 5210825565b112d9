"""Permutations by gathered words: results, faults, accesses, and estimates of their costs."""

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
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig, shared_units, walks_of
from lego_mlir.kernels.permute.by_gathers.costs import count_gathers
from lego_mlir.kernels.permute.by_gathers.heuristic import configs_of
from lego_mlir.kernels.permute.by_gathers.kernel import gather_permutation
from lego_mlir.kernels.permute.heuristic import by_gathers, choose_config
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem

check = partial(check_kernel, variant="gathers")


def problem_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> PermuteProblem:
    target = tuple(shape[k] for k in axes)
    found = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*target)))
    assert found is not None
    return found


def gather_kernel(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, config: GatherConfig
) -> Kernel:
    source, target = (OrderBy(Row(*sizes)) for sizes in (shape, [shape[k] for k in axes]))
    a, b = TensorType(dtype, source, 16), TensorType(dtype, target, 16)
    reference = f"permute({', '.join(map(str, axes))})"
    return gather_permutation("permute", problem_of(shape, axes), config, a, b, reference)


@given(permutations(), st.sampled_from(list(DTYPES)))
@settings(max_examples=20)
def test_any_permutation(drawn: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    check(*drawn, dtype)


@st.composite
def any_tiles(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, GatherConfig]:
    """Draw a permutation, a type, and a config of any tile, which may store whole sectors."""
    dtype = draw(st.sampled_from(["i8", "i8", "f16"]))
    size = DTYPES[dtype]().itemsize
    shape, axes = draw(permutations())
    problem = problem_of(shape, axes)
    tile = tuple(draw(st.integers(1, mode.size)) for mode in problem.modes)
    assume(prod(tile) * size <= 40_000)
    sector = draw(st.sampled_from([1, SECTOR_BYTES // size]))
    max_bytes = draw(st.sampled_from([4, 8, 16]))
    configs = list(configs_of(problem, tile, 1, size, max_bytes, sector))
    assume(configs)
    return shape, axes, dtype, draw(st.sampled_from(configs))


@given(any_tiles(), st.sampled_from(["late", "early", "random:1"]))
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_any_tile(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, GatherConfig], order: str
) -> None:
    """Cut ones, overlapping ones, and those whose rows have several modes."""
    shape, axes, dtype, config = drawn
    check_kernel(shape, axes, dtype, order, gather_kernel(shape, axes, dtype, config))


def test_tensors_of_less_than_two_chunks() -> None:
    """What is behind the input's last unit is written in shared memory, which vectors may read."""
    config = next(configs_of(problem_of((3, 2), (1, 0)), (2, 3), 1, 1, 4, 1))
    check_kernel((3, 2), (1, 0), "i8", "late", gather_kernel((3, 2), (1, 0), "i8", config))


@given(any_tiles())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_two_rows_have_a_chunk_in_common(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, GatherConfig],
) -> None:
    """Whichever chunk of the input the tile begins inside of."""
    shape, axes, _, config = drawn
    walks = walks_of(problem_of(shape, axes), config)
    assert walks is not None
    source, chunk = walks.source, config.chunk
    outer = source.side.outer
    rows = np.indices([config.tile[k] for k in outer])
    starts = np.tensordot([config.pitches[k] for k in outer], rows, 1).ravel().astype(int)
    for phase in range(1 if source.is_aligned else chunk):
        first = (starts + phase) // chunk
        chunks = (first[:, None] + np.arange(source.touched)).ravel()
        assert len(set(chunks.tolist())) == chunks.size
        assert (chunks.max() + 1) * chunk <= shared_units(source, config.pitches)


def test_tiles_of_odd_rows_have_neither_loads_nor_stores_of_bytes_but_at_ends_of_rows() -> None:
    shape, tile = (301, 65), (65, 131)
    configs = configs_of(problem_of(shape, (1, 0)), tile, 1, 1, 16, 32)
    config = next(config for config in configs if config.word == 4)
    (costs,) = gather_kernel(shape, (1, 0), "i8", config).run(device="sim", costs=True).costs
    stores = [c for c in costs.memory if str(c.instruction).startswith("st.global")]
    assert sum(cost.bytes for cost in stores) == prod(shape)
    by_bytes = [cost for cost in stores if cost.bytes == cost.lanes]
    assert sum(cost.bytes for cost in by_bytes) <= 2 * 3 * 65  # of 65 rows, not of 3 tiles each
    loads = [c for c in costs.memory if str(c.instruction).startswith("ld.global")]
    assert sum(cost.bytes for cost in loads) == 16  # of the last chunk, of which memory has a part


def test_words_of_odd_rows_do_not_meet_in_banks() -> None:
    config = next(configs_of(problem_of((300, 65), (1, 0)), (65, 131), 1, 1, 16, 1))
    (costs,) = gather_kernel((300, 65), (1, 0), "i8", config).run(device="sim", costs=True).costs
    takes = [c for c in costs.memory if str(c.instruction).startswith("ld.shared") and c.requests]
    assert sum(c.wavefronts for c in takes) <= 1.1 * sum(c.requests for c in takes)


@pytest.mark.parametrize(
    ("shape", "axes", "size"), [((97, 44, 71), (2, 1, 0), 1), ((64, 3, 101), (2, 0, 1), 2)]
)
def test_costs_are_those_of_the_simulator(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int
) -> None:
    """What is not counted are lanes that have nothing to do."""
    dtype = {1: "i8", 2: "f16"}[size]
    problem = problem_of(shape, axes)
    found = by_gathers(problem, size, 16 // size)
    assert found is not None
    config, _ = found
    estimate = count_gathers(problem.in_units(config.unit), config)
    (costs,) = permute(shape, axes, dtype, variant="gathers").run(device="sim", costs=True).costs
    warps = prod(shape) / 32
    requests = sum(row.requests for row in costs.memory if row.space == "global") / warps
    assert estimate.requests == pytest.approx(requests, rel=0.3)


@pytest.mark.parametrize(
    ("shape", "axes", "size", "is_fastest"),
    [
        ((2, 3, 1980, 3, 1127, 5), (3, 2, 4, 0, 1, 5), 1, True),
        ((365, 3, 4373, 3, 1), (0, 3, 2, 4, 1), 1, True),
        ((3159, 3335, 21), (2, 0, 1), 1, True),
        ((205, 2967, 1, 35), (3, 2, 0, 1), 2, True),
        ((156, 1260, 13, 4), (2, 3, 1, 0), 1, False),
        ((82, 5, 4, 778, 12, 9), (2, 5, 3, 4, 0, 1), 1, False),
        ((2, 510, 1852, 9), (2, 0, 3, 1), 2, False),
    ],
)
def test_the_heuristic_takes_what_was_fastest(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int, is_fastest: bool
) -> None:
    """On an H200 (bench/results/permute_gathers.jsonl)."""
    config = choose_config(problem_of(shape, axes), size, 16 // size)
    assert isinstance(config, GatherConfig) == is_fastest


def test_units_of_a_word_are_not_gathered() -> None:
    assert by_gathers(problem_of((33, 47), (1, 0)), 2, 8) is not None
    assert by_gathers(problem_of((33, 47), (1, 0)), 4, 4) is None
    check((33, 47), (1, 0), "f32")


def test_addresses_that_are_aligned_to_elements_only_have_no_chunks() -> None:
    assert by_gathers(problem_of((33, 47), (1, 0)), 1, 1) is None
    check((33, 47), (1, 0), "i8", alignment=1)


def test_sizes_that_only_the_launch_knows_are_refused() -> None:
    with pytest.raises(LegoError, match="'gathers' is for sizes that are known before the launch"):
        transpose(None, 96, variant="gathers")
