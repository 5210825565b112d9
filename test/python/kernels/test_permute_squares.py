"""Permutations by squares: results, faults, accesses, and estimates of their costs."""

from __future__ import annotations

from functools import partial
from importlib import import_module
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
from lego_mlir.kernels.permute.by_squares.config import SquareConfig, pitches_of, sides_of
from lego_mlir.kernels.permute.by_squares.costs import count_squares
from lego_mlir.kernels.permute.by_squares.heuristic import configs_of
from lego_mlir.kernels.permute.by_squares.kernel import square_permutation
from lego_mlir.kernels.permute.heuristic import by_squares, choose_config
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem
from lego_mlir.kernels.permute.runs import steps_apart


def problem_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> PermuteProblem:
    target = tuple(shape[k] for k in axes)
    found = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*target)))
    assert found is not None
    return found


check = partial(check_kernel, variant="squares")


@given(permutations(), st.sampled_from(list(DTYPES)))
@settings(max_examples=20)
def test_any_permutation(drawn: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    check(*drawn, dtype)


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        ("i8", (131, 97), (1, 0)),
        ("f16", (7, 11, 5, 2, 3), (3, 2, 0, 4, 1)),
        ("i8", (3,), (0,)),
    ],
    ids=["odd rows and columns", "short runs", "less than a word"],
)
@pytest.mark.parametrize("order", ["late", "early"])
def test_any_order_of_threads(
    dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], order: str
) -> None:
    check(shape, axes, dtype, order)


def test_rows_of_many_short_modes_are_derived_within_the_limit() -> None:
    kernel = permute((2, 103, 89, 7, 3, 35), (1, 3, 2, 5, 0, 4), "i8", variant="squares")
    assert "permute" in kernel.compile("sm_90a").ptx


def square_kernel(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, config: SquareConfig
) -> Kernel:
    source, target = (OrderBy(Row(*sizes)) for sizes in (shape, [shape[k] for k in axes]))
    a, b = TensorType(dtype, source, 16), TensorType(dtype, target, 16)
    reference = f"permute({', '.join(map(str, axes))})"
    return square_permutation("permute", problem_of(shape, axes), config, a, b, reference)


@st.composite
def any_tiles(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, SquareConfig]:
    """Draw a permutation, a type, and a config of any tile, which may store whole sectors."""
    dtype = draw(st.sampled_from(["i8", "i8", "f16", "f32", "f64"]))
    size = DTYPES[dtype]().itemsize
    shape, axes = draw(permutations())
    problem = problem_of(shape, axes)
    joined = draw(st.integers(1, max(1, len(problem.modes) - 1)))
    modes = problem.joined(joined).modes
    tile = tuple(draw(st.integers(1, mode.size)) for mode in modes)
    assume(not problem.is_copy and prod(tile) * size <= 40_000)
    sector = draw(st.sampled_from([1, max(1, 4 // size), SECTOR_BYTES // size]))
    group = SECTOR_BYTES // size
    configs = list(configs_of(problem, tile, 1, size, sector, group, joined))
    assume(configs)
    return shape, axes, dtype, draw(st.sampled_from(configs))


@given(any_tiles())
@settings(max_examples=24, suppress_health_check=list(HealthCheck))
def test_any_tile(drawn: tuple[tuple[int, ...], tuple[int, ...], str, SquareConfig]) -> None:
    """Cut ones, overlapping ones, and those whose rows have several modes."""
    shape, axes, dtype, config = drawn
    check_kernel(shape, axes, dtype, made=square_kernel(shape, axes, dtype, config))


@st.composite
def rows_of_a_warp(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, SquareConfig]:
    """Draw a permutation, a type, and a tile whose rows have a word for nearly each lane."""
    dtype, square = draw(st.sampled_from([("i8", 4), ("f16", 2)]))
    across = draw(st.integers(23 * square, 32 * square - 1))
    if draw(st.booleans()):
        shape: tuple[int, ...] = (draw(st.integers(5, 90)), across + draw(st.integers(0, 40)))
        axes: tuple[int, ...] = (1, 0)
    else:
        shape = (draw(st.integers(2, 30)), draw(st.integers(1, 4)), across, draw(st.integers(1, 3)))
        axes = draw(st.sampled_from([(2, 1, 0, 3), (3, 1, 2, 0), (1, 2, 3, 0)]))
    problem = problem_of(shape, axes)
    tile = tuple(
        min(mode.size, across) if mode.source == 1 else draw(st.integers(1, mode.size))
        for mode in problem.modes
    )
    size = 4 // square
    assume(not problem.is_copy and prod(tile) * size <= 40_000)
    sector = draw(st.sampled_from([1, SECTOR_BYTES // size]))
    configs = list(configs_of(problem, tile, 1, size, sector, SECTOR_BYTES // size))
    assume(configs)
    return shape, axes, dtype, draw(st.sampled_from(configs))


@given(rows_of_a_warp(), st.sampled_from(["late", "early", "random:1"]))
@settings(max_examples=24, suppress_health_check=list(HealthCheck))
def test_lanes_of_a_row_that_load_a_word_each(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, SquareConfig], order: str
) -> None:
    shape, axes, dtype, config = drawn
    check_kernel(shape, axes, dtype, order, square_kernel(shape, axes, dtype, config))


def test_words_that_rows_begin_and_end_inside_of_are_loaded_once_by_a_warp() -> None:
    shape = (96, 247)
    loads = []
    for across in (124, 128):
        config = SquareConfig((across, 96), 256, 1, 1, 4, 100)
        kernel = square_kernel(shape, (1, 0), "i8", config)
        (costs,) = kernel.run(device="sim", costs=True).costs
        rows = [c for c in costs.memory if c.instruction.opcode.startswith("ld.global")]
        loads.append(sum(row.requests for row in rows))
    assert loads[0] * 1.9 <= loads[1]


def test_wide_bytes_have_tiles_whose_rows_are_loaded_by_a_warp_each() -> None:
    """The fastest tile on an H200 of what had a narrower one (permute_shared_words.jsonl)."""
    config = choose_config(problem_of((5090, 5546), (1, 0)), 1, 16)
    assert isinstance(config, SquareConfig)
    assert config.tile[0] == 124


def test_tiles_that_store_whole_words_have_no_ends_but_those_of_rows() -> None:
    shape, tile, size = (300, 64), (64, 131), 300 * 64
    config = next(iter(configs_of(problem_of(shape, (1, 0)), tile, 1, 1, 4)))
    (costs,) = square_kernel(shape, (1, 0), "i8", config).run(device="sim", costs=True).costs
    stores = [c for c in costs.memory if str(c.instruction).startswith("st.global")]
    assert sum(cost.bytes for cost in stores) == size
    by_bytes = [cost for cost in stores if cost.bytes == cost.lanes]
    assert sum(cost.bytes for cost in by_bytes) <= 2 * 3 * 64  # of 64 rows, not of 3 tiles each


def test_tiles_that_begin_anywhere_in_several_modes_store_whole_sectors() -> None:
    """Rows of 5·51 bytes that are read in 51 pieces of 5: no sector within one is stored twice."""
    shape, axes, rows = (5, 51, 9), (2, 1, 0), 9
    config = next(iter(configs_of(problem_of(shape, axes), (9, 95), 1, 1, 32, joined=2)))
    kernel = square_kernel(shape, axes, "i8", config)
    check_kernel(shape, axes, "i8", made=kernel)
    (costs,) = kernel.run(device="sim", costs=True).costs
    stores = [c for c in costs.memory if str(c.instruction).startswith("st.global")]
    assert sum(cost.bytes for cost in stores) == prod(shape)
    ends = [cost for cost in stores if cost.bytes == cost.lanes]
    assert sum(cost.bytes for cost in ends) <= rows * SECTOR_BYTES
    # A sector of words is stored once; of two rows' ends each is stored by itself.
    assert sum(c.sectors for c in stores if c not in ends) <= prod(shape) // SECTOR_BYTES + 2 * rows


@pytest.mark.parametrize(
    ("steps", "inner", "rows", "sector", "apart"),
    [
        (540, 1, 73660, 32, 512),  # rows begin at multiples of 4: 28 units may precede a sector
        (95, 1, 255, 32, 64),
        (64, 1, 0, 32, 64),  # one row
        (9, 41, 6601, 8, 8),
        (5, 24, 65424, 32, 4),  # 4·24 is a multiple of 16, as rows' begins are
        (6, 24, 65424, 32, 4),  # 5·24 is none: up to 31 units
    ],
)
def test_tiles_overlap_by_what_may_precede_a_sector(
    steps: int, inner: int, rows: int, sector: int, apart: int
) -> None:
    assert steps_apart(steps, inner, rows, sector) == apart


def test_tiles_begin_anywhere_in_several_modes_where_that_was_faster() -> None:
    """0.85 of a copy on an H200, by rows of their own 0.69 (bench/results/permute_joined.jsonl)."""
    config = choose_config(problem_of((365, 2272, 111), (2, 1, 0)), 2, 8)
    assert isinstance(config, SquareConfig)
    assert config.joined > 1


def test_words_behind_the_rows_of_a_cut_tile_are_not_taken() -> None:
    """Threads go to words that a row has not: nothing has written what lies there."""
    shape, tile = (301, 20), (20, 256)
    configs = configs_of(problem_of(shape, (1, 0)), tile, 1, 1, 1, SECTOR_BYTES)
    config = next(config for config in configs if config.group > 1)
    check_kernel(shape, (1, 0), "i8", made=square_kernel(shape, (1, 0), "i8", config))


def test_units_of_eight_bytes_have_no_squares() -> None:
    assert by_squares(problem_of((33, 47), (1, 0)), 4, 4) is not None
    assert by_squares(problem_of((33, 47), (1, 0)), 8, 2) is None
    check((33, 47), (1, 0), "f64")


def test_addresses_that_are_aligned_to_elements_only_have_no_squares() -> None:
    assert by_squares(problem_of((33, 47), (1, 0)), 1, 1) is None
    check((33, 47), (1, 0), "i8", alignment=1)


@pytest.mark.parametrize(("dtype", "square"), [("i8", 4), ("f16", 2), ("f32", 1)])
def test_all_accesses_are_of_words_that_do_not_meet_in_banks(dtype: str, square: int) -> None:
    """Of rows that are aligned; the input's have a square for each lane."""
    m = n = 32 * square
    size = 4 // square
    config = SquareConfig((m, n), 128, 1, size, square, pitch=n + square)
    (costs,) = square_kernel((n, m), (1, 0), dtype, config).run(device="sim", costs=True).costs
    rows = [cost for cost in costs.memory if cost.requests]
    assert all(cost.bytes == 4 * cost.lanes for cost in rows)
    assert all(cost.wavefronts == cost.requests for cost in rows if cost.space == "shared")
    assert sum(cost.bytes for cost in rows if cost.space == "shared") == 2 * m * n * size


@given(any_tiles())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_have_no_mode_in_common_and_units_no_place(
    drawn: tuple[tuple[int, ...], tuple[int, ...], str, SquareConfig],
) -> None:
    shape, axes, _, config = drawn
    joined = config.joined
    sides = sides_of(
        problem_of(shape, axes), config.tile, config.square, config.sector, joined=joined
    )
    assert sides is not None
    source, target = sides
    assert not {*source.side.run} & {*target.side.run}
    pitches, units = pitches_of(source, target, config.pitch)
    offsets = np.tensordot(pitches[: len(config.tile)], np.indices(config.tile), 1).ravel()
    assert len(set(offsets.tolist())) == prod(config.tile)
    assert offsets.max() + config.square <= units


@pytest.mark.parametrize(
    ("shape", "axes", "size"), [((32, 44, 70), (2, 1, 0), 1), ((64, 3, 100), (2, 0, 1), 2)]
)
def test_costs_are_those_of_the_simulator(
    shape: tuple[int, ...], axes: tuple[int, ...], size: int
) -> None:
    """Of tiles that are not cut; what is not counted are lanes that have nothing to do."""
    dtype = {1: "i8", 2: "f16"}[size]
    problem = problem_of(shape, axes)
    found = by_squares(problem, size, 16 // size)
    assert found is not None
    config, _ = found
    estimate = count_squares(problem.in_units(config.unit), config)
    (costs,) = permute(shape, axes, dtype, variant="squares").run(device="sim", costs=True).costs
    warps = prod(shape) / 32
    requests = sum(row.requests for row in costs.memory if row.space == "global") / warps
    assert estimate.requests == pytest.approx(requests, rel=0.3)


@pytest.mark.parametrize(
    ("tile", "threads"), [((5, 8, 127), 128), ((5, 8, 127), 512), ((5, 4, 127), 128)]
)
def test_stores_of_parts_of_sectors_count_where_tiles_store_whole_ones(
    tile: tuple[int, ...], threads: int
) -> None:
    """Threads stay at the phase of their rows, so few of them are side by side on rows of many."""
    shape, axes = (351, 16, 5), (2, 1, 0)
    config = SquareConfig(tile, threads, 1, 2, 2, 130, sector=SECTOR_BYTES // 2)
    estimate = count_squares(problem_of(shape, axes), config)
    (costs,) = square_kernel(shape, axes, "f16", config).run(device="sim", costs=True).costs
    stores = [row for row in costs.memory if row.instruction.opcode.startswith("st.global")]
    bytes_touched = sum(row.sectors for row in stores) * SECTOR_BYTES
    assert estimate.stored == pytest.approx(bytes_touched / (2 * prod(shape)), rel=0.15)


@pytest.mark.parametrize(
    ("shape", "axes", "is_fastest"),
    [
        ((818, 12, 3140), (2, 0, 1), True),
        ((3604, 1, 4310), (1, 2, 0), True),
        ((1911, 20, 4, 1, 15, 19), (3, 5, 2, 4, 0, 1), True),
        ((1959, 7, 13, 110, 5), (2, 0, 4, 1, 3), True),
        ((2, 139, 435, 4182), (1, 2, 0, 3), False),
    ],
)
def test_the_heuristic_takes_what_was_fastest(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    is_fastest: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of bytes on an H200, where no words were gathered."""
    heuristic = import_module("lego_mlir.kernels.permute.heuristic")
    monkeypatch.setattr(heuristic, "gather_candidates", lambda *_: [])
    config = choose_config(problem_of(shape, axes), 1, 16)
    assert isinstance(config, SquareConfig) == is_fastest


def test_sizes_that_only_the_launch_knows_are_refused() -> None:
    with pytest.raises(LegoError, match="'squares' is for sizes that are known before the launch"):
        transpose(None, 96, variant="squares")
