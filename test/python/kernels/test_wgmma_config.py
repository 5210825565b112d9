"""WGMMA configs: what they refuse, their layouts, the heuristic, and the tuned table."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lego_mlir as lg
from bench.sample.families import families
from bench.sample.fit import read_samples, regrets
from lego_mlir.algebra import Col, OrderBy, Row
from lego_mlir.analysis.shared_tiles import tma_swizzled_tile, tma_swizzled_transpose
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.epilogue_tiles import epilogue_columns
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.planner import plan
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import raster_groups
from lego_mlir.kernels.gemm.tile_program import schedule_params
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, shared_bytes_of, tiles_of
from lego_mlir.kernels.gemm.wgmma.heuristic import estimate, rank, rank_grouped
from lego_mlir.kernels.gemm.wgmma.work import work_of

H200 = Target.parse("sm_90a")
GPU = spec_of(H200)
SHARED = H200.optin_shared_bytes
LARGE = Problem(4096, 4096, 4096, "f16", "f16")
CONFIG = WgmmaConfig((128, 256, 64), 2, 4, persistent_ctas=132, overlap_epilogue=True)
RESULTS = Path(__file__).parents[3] / "bench" / "results"
SHAPES = [
    (128, 128, 128),
    (256, 256, 256),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (16, 8192, 8192),
    (8192, 16, 64),
    (2112, 7168, 2048),
    (1, 1, 1),
    (300, 500, 72),
]


# --------------------------------------------------------------------------------------- configs
def test_sizes_and_parameters_of_a_config() -> None:
    assert CONFIG.threads == 256
    assert CONFIG.tiles(LARGE) == (32, 16)
    assert CONFIG.k_iterations(replace(LARGE, k=250)) == 4
    assert CONFIG.epilogue_tiles(LARGE) == 4
    params = schedule_params(CONFIG, LARGE, H200)
    assert params["ctas"] == 132
    assert params["overlap_epilogue"] == 1
    # Three warpgroups share the registers of a multiprocessor.
    assert params["producer_registers"] + 2 * params["consumer_registers"] <= 65536 // 128
    CONFIG.check(LARGE, SHARED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tile": (96, 128, 64)}, "96 rows are not a multiple of 128"),
        ({"consumers": 4}, "one to three consumer warpgroups"),
        ({"tile": (128, 250, 64)}, "8 to 256 columns, in steps of 8, not 250"),
        ({"tile": (128, 264, 64)}, "8 to 256 columns, in steps of 8, not 264"),
        ({"tile": (128, 256, 24)}, "k = 24 is not a multiple of the 16 of a wgmma"),
        (
            {"tile": (256, 256, 64)},
            "256 accumulators and a result whose store is overlapped: 384 registers, more than 204",
        ),
        (
            {"tile": (256, 208, 64), "overlap_epilogue": False},
            "208 accumulators: 208 registers, more than 204",
        ),
        (
            {"tile": (256, 96, 64), "overlap_epilogue": False, "promote": 4},
            "96 accumulators, which are promoted: 208 registers, more than 204",
        ),
        (
            {"tile": (192, 208, 64), "consumers": 3},
            "with 3 consumers a tile has at most 200 columns",
        ),
        ({"stages": 1}, "at least 2"),
        ({"raster_group": 0}, "at least one tile"),
        ({"cluster": (3, 1)}, "a cluster is 1, 2, 4 or 8 tiles"),
        ({"cluster": (4, 4)}, "a cluster is 1, 2, 4 or 8 tiles"),
        ({"cluster": (-2, -2)}, "a cluster is 1, 2, 4 or 8 tiles"),
        ({"persistent_ctas": 130, "cluster": (2, 2)}, "130 persistent CTAs are not a multiple"),
        ({"l2_promotion": 32}, "l2_promotion is one of 0, 64, 128, 256 bytes"),
        ({"persistent_ctas": 133, "cluster": (2, 1)}, "133 persistent CTAs are not a multiple"),
        ({"persistent_ctas": -2}, "persistent_ctas is a number of CTAs, or 0"),
        ({"split_k": 9}, "split_k is at most 8, the CTAs of a cluster"),
        ({"split_k": 2, "cluster": (2, 1)}, "share tiles of A or B, but not both"),
        ({"split_k": 2}, "the kernel is not persistent"),
        ({"persistent_ctas": 0}, "needs CTAs with a next tile"),
        (
            {"ping_pong": True, "tile": (64, 128, 64)},
            "ping-pong is for two consumers, of which one stores",
        ),
        (
            {"ping_pong": True, "tile": (64, 64, 64), "consumers": 1},
            "ping-pong is for two consumers",
        ),
        (
            {"ping_pong": True, "overlap_epilogue": False, "tile": (64, 256, 64)}
            | {"persistent_ctas": 1024},
            "ping-pong needs CTAs with several tiles",
        ),
        (
            {"ping_pong": True, "overlap_epilogue": False},
            "256 accumulators: 256 registers, more than 204",
        ),
        ({"persistent_ctas": 512}, "needs CTAs with a next tile"),
        ({"stages": 5}, "more than the 232448 of a CTA"),
    ],
)
def test_wrong_configs_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        replace(CONFIG, **change).check(LARGE, SHARED)


def test_a_wgmma_of_integers_has_fewer_widths() -> None:
    numbers = replace(LARGE, dtype="i8", out="i32", b="col")
    plain = WgmmaConfig((128, 24, 128), 2, 2)
    for n in (8, 24, 48):
        replace(plain, tile=(128, n, 128)).check(numbers, SHARED)
    for n in (40, 56):
        replace(plain, tile=(128, n, 64)).check(replace(LARGE, b="col"), SHARED)
        with pytest.raises(LegoError, match=r"of integers .* in steps of 16, or 8 or 24, not"):
            replace(plain, tile=(128, n, 128)).check(numbers, SHARED)


def test_the_grid_is_padded_to_whole_clusters() -> None:
    odd = replace(LARGE, m=33 * 128)
    plain = replace(CONFIG, overlap_epilogue=False)
    for cluster, grid in {(2, 1): (34, 16), (1, 2): (33, 16), (2, 4): (34, 16)}.items():
        config = replace(plain, cluster=cluster, persistent_ctas=0)
        config.check(odd, SHARED)
        assert config.tiles(odd) == (33, 16)
        assert config.grid(odd) == grid
        assert config.padding(odd) == ((1, 1) if grid == (33, 16) else cluster)
        assert config.work_items(odd) == grid[0] * grid[1]
        assert config.rasterization(odd, 3).dims == (3, *grid)


def test_epilogue_tiles_overlap_iterations() -> None:
    with pytest.raises(LegoError, match=r"4 epilogue tiles .* and there are 3"):
        CONFIG.check(replace(LARGE, k=192), SHARED)


def test_split_k_slices_are_whole_iterations() -> None:
    shared = WgmmaConfig((64, 64, 64), 1, 4, split_k=2)
    few = replace(LARGE, m=64)
    shared.check(few, SHARED)
    assert shared.work_items(few) == 2 * 64
    shared.check(replace(few, k=192), SHARED)
    with pytest.raises(LegoError, match="1 iterations of the K loop leave none"):
        shared.check(replace(few, k=64), SHARED)
    with pytest.raises(LegoError, match="9 iterations of the K loop leave none"):
        replace(shared, split_k=4, tile=(64, 128, 64)).check(replace(few, k=9 * 64), SHARED)
    with pytest.raises(LegoError, match="a CTA stores 12 columns, which is not a multiple of 8"):
        replace(shared, tile=(64, 24, 64)).check(replace(few, b="col"), SHARED)


# --------------------------------------------------------------------------------------- layouts
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (128, 32), (64, 192), (8, 256)])
def test_tma_swizzled_tiles_have_no_bank_conflicts(rows: int, columns: int, size: int) -> None:
    layout = tma_swizzled_tile(rows, columns, size)
    offsets = np.asarray(layout.apply(*np.indices((rows, columns))))
    assert sorted(offsets.flat) == list(range(rows * columns))
    transpose = tma_swizzled_transpose(columns, rows, size)
    swapped = np.asarray(transpose.apply(*np.indices((columns, rows))))
    assert np.array_equal(swapped, offsets.T)
    # stmatrix writes 16 bytes of eight rows, which are in different banks.
    assert len(set((offsets[:8, 0] * size // 16 % 8).tolist())) == 8


def test_epilogue_tiles_are_one_swizzle_wide() -> None:
    assert epilogue_columns(256, 2) == 64
    assert epilogue_columns(48, 2) == 16
    assert epilogue_columns(256, 4) == 32
    assert epilogue_columns(16, 2, by_row=False) == 16
    with pytest.raises(LegoError, match="a column of 64 elements of 4 bytes is wider"):
        epilogue_columns(64, 4, by_row=False)
    with pytest.raises(LegoError, match=r"rows of 24 elements of 2 bytes .* multiple of 32"):
        tma_swizzled_tile(64, 24, 2)
    with pytest.raises(LegoError, match="20 columns of C are no multiple of 8"):
        epilogue_columns(20, 2)


def test_swapped_tiles_of_odd_widths_have_chunks_that_stmatrix_writes() -> None:
    found = {n: epilogue_columns(n, 2, by_row=False) for n in (176, 208, 240, 152, 80, 112)}
    assert found == {176: 16, 208: 16, 240: 48, 152: 8, 80: 40, 112: 56}


RASTERS = [
    (16, 12, 8, (2, 1)),
    (16, 12, 8, (1, 2)),
    (17, 38, 8, (1, 2)),
    (6, 1, 4, (2, 1)),
    (3, 5, 8, (1, 1)),
    (8, 8, 1, (1, 4)),
    (17, 4, 8, (1, 1)),
    (4, 17, 8, (1, 1)),
    (34, 4, 8, (2, 1)),
    (4, 34, 8, (1, 2)),
    (34, 6, 8, (2, 2)),
    (6, 34, 8, (2, 2)),
    (8, 28, 16, (2, 4)),
    (52, 4, 16, (4, 1)),
]


@pytest.mark.parametrize(("down", "across", "raster_group", "cluster"), RASTERS)
@pytest.mark.parametrize("batch", [None, 3])
def test_ctas_of_a_cluster_are_neighbours(
    down: int, across: int, raster_group: int, cluster: tuple[int, int], batch: int | None
) -> None:
    layout = raster_groups(down, across, raster_group, cluster, batch)
    assert layout.verify()
    count = down * across * (batch or 1)
    assert layout.dims == ((down, across) if batch is None else (batch, down, across))
    found = np.stack(layout.inv(np.arange(count)))
    assert len(set(map(tuple, found.T.tolist()))) == count
    assert (layout.apply(*found) == np.arange(count)).all()
    by_cluster = found.reshape(len(found), -1, prod(cluster))
    sizes = (*(1,) * (len(found) - 2), *cluster)
    for tiles, size in zip(by_cluster, sizes, strict=True):
        assert (tiles.min(axis=1) % size == 0).all()
        assert (np.ptp(tiles, axis=1) == size - 1).all()


def in_groups(rows: int, columns: int, height: int) -> list[tuple[int, int]]:
    """Return tiles in groups of `height` rows, each group column by column."""
    return [
        (i, j)
        for first in range(0, rows, height)
        for j in range(columns)
        for i in range(first, min(first + height, rows))
    ]


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 20))
def test_raster_groups_of_any_number_of_tiles(down: int, across: int, most: int) -> None:
    layout = raster_groups(down, across, most)
    found = list(zip(*np.asarray(layout.inv(np.arange(down * across))).tolist(), strict=True))
    by_rows = [h for h in range(1, most + 1) if in_groups(down, across, h) == found]
    by_columns = [
        w for w in range(1, most + 1) if [(i, j) for j, i in in_groups(across, down, w)] == found
    ]
    # A group is at least half as high as it may be.
    assert any(2 * h >= min(most, down) for h in by_rows) or any(
        2 * w >= min(most, across) for w in by_columns
    )


# ----------------------------------------------------------------------------------------- model
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "out"), [("f16", "f16"), ("bf16", "f32"), ("f8E5M2", "f16")])
def test_every_estimate_is_of_a_config_that_fits(
    shape: tuple[int, int, int], dtype: str, out: str
) -> None:
    problem = Problem(*shape, dtype, out, b="col")
    found = rank(problem, H200)
    assert found
    for e in found:
        e.config.check(problem.transpose if e.config.swap_ab else problem, SHARED)
        assert e.microseconds > 0
    # A config with a much slower estimate does not come first.
    assert found[0].microseconds <= 1.02 * min(e.microseconds for e in found)


def first(*shape: int) -> WgmmaConfig:
    a, b, c = shape
    return rank(Problem(a, b, c, "f16", "f16"), H200)[0].config


def test_small_gemms_take_tiles_of_one_wave() -> None:
    for n in (128, 256, 512, 1024):
        config = first(n, n, n)
        assert not config.persistent_ctas
        assert config.work_items(Problem(n, n, n, "f16", "f16")) <= 2 * GPU.multiprocessors


def test_large_gemms_are_persistent_with_large_tiles() -> None:
    for shape in ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 1024), (4864, 4096, 8192)):
        config = first(*shape)
        assert config.persistent_ctas > 0.8 * GPU.multiprocessors
        assert prod(config.tile[:2]) >= 128 * 192


def test_gemms_of_few_rows_have_narrow_tiles() -> None:
    config = first(16, 8192, 8192)
    assert min(config.tile[:2]) <= 64
    assert config.swap_ab or config.tile[0] == 64


@pytest.mark.parametrize(
    ("problem", "limits"),
    [
        (replace(LARGE, m=8192, n=8192, k=8192), {"power", "tensor cores"}),
        (replace(LARGE, m=16, k=8192, n=8192), {"memory"}),
        (replace(LARGE, m=1024, n=1024, k=8192), {"tensor cores", "cache"}),
    ],
)
def test_the_limit_of_a_gemm(problem: Problem, limits: set[str]) -> None:
    assert rank(problem, H200)[0].limit in limits


@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 9000), st.booleans())
def test_the_table_says_what_configs_say(m: int, n: int, k: int, is_by_row: bool) -> None:
    """Estimates of a whole table are those of its configs, with their tiles and shared memory."""
    problem = Problem(8 * m, 8 * n, 8 * k, "f16", "f16", b="row" if is_by_row else "col")
    for found in rank(problem, H200)[::8]:
        config = found.config
        swapped = problem.transpose if config.swap_ab else problem
        table = ConfigTable.of([config], 2)
        assert estimate(problem, config, GPU).microseconds == pytest.approx(found.microseconds)
        assert tuple(int(x[0]) for x in tiles_of(problem, table)) == config.grid(swapped)
        assert int(shared_bytes_of(problem, table)[0]) == config.shared_bytes(swapped)


def test_short_rows_have_boxes_that_hold_them() -> None:
    """TMA takes its time to fill what is outside of a row with zeros."""
    assert {e.config.tile[2] for e in rank(Problem(4096, 4096, 8, "f16", "f16"), H200)} == {16}
    assert {e.config.tile[2] for e in rank(Problem(4096, 4096, 24, "f16", "f16"), H200)} == {32}
    assert {e.config.tile[2] for e in rank(Problem(4096, 4096, 40, "f16", "f16"), H200)} == {64}


@pytest.mark.parametrize(
    ("rows", "columns", "b", "cluster", "count"),
    [
        (128, 24, "row", (1, 1), 64),  # one for each k of a step
        (128, 24, "row", (2, 1), 32),  # which a cluster shares
        (128, 32, "row", (1, 1), 0),
        (128, 24, "col", (1, 1), 0),  # rows along k
        (64 * 400, 24, "row", (1, 1), 0),  # several waves
    ],
)
def test_rows_that_are_partly_outside(
    rows: int, columns: int, b: str, cluster: tuple[int, int], count: int
) -> None:
    config = WgmmaConfig((64, 32, 64), 1, 4, cluster=cluster)
    problem = Problem(rows, columns, 512, "f16", "f16", b=b)
    work = work_of(problem, ConfigTable.of([replace(config, one_cta_per_sm=True)], 2), GPU)
    assert work.zero_rows.tolist() == [count]


@pytest.mark.parametrize(
    ("split_k", "clusters", "waves"),
    [(3, 39, 1), (3, 40, 2), (5, 22, 1), (5, 23, 2), (6, 17, 1), (6, 18, 2), (7, 15, 1)],
)
def test_whole_clusters_run_at_the_same_time(split_k: int, clusters: int, waves: int) -> None:
    """An H200 has 132 multiprocessors, and its driver says that 39 clusters of 3 CTAs fit."""
    config = WgmmaConfig((64, 8 * split_k, 64), 1, 4, split_k=split_k, one_cta_per_sm=True)
    problem = Problem(64 * clusters, 8 * split_k, 8192, "f16", "f16")
    work = work_of(problem, ConfigTable.of([config], 2), GPU)
    assert work.waves.tolist() == [waves]


@pytest.mark.parametrize(
    ("columns", "b", "swap", "requests"),
    [
        (64, "row", False, 16.0),  # a row of B is a line, which 16 tiles of rows read
        (16, "row", False, 64.0),  # a line has four rows
        (24, "row", False, 16 * 128 / 48),
        (24, "row", True, 16 * 128 / 48),
        (24, "col", False, 16.0),  # rows along k
    ],
)
def test_short_rows_of_a_line_are_asked_for_one_by_one(
    columns: int, b: str, swap: bool, requests: float
) -> None:
    tile = (64, 64, 64)
    problem = Problem(16 * 64, columns, 512, "f16", "f16", b=b)
    config = WgmmaConfig(tile, 1, 4, swap_ab=swap)
    work = work_of(problem, ConfigTable.of([config], 2), GPU)
    assert work.readers.tolist() == [pytest.approx(requests)]


def test_slices_that_one_cta_adds_up_in_order_are_loaded_by_it() -> None:
    added = WgmmaConfig((64, 32, 64), 1, 4, split_k=3, split_k_through="l2")
    in_order = replace(added, deterministic=True)
    work = work_of(Problem(64, 32, 4096, "f16", "f16"), ConfigTable.of([added, in_order], 2), GPU)
    tile = 64 * 32 * 4
    assert work.added.tolist() == [tile, 0]
    assert work.gathered.tolist() == [0, 3 * tile]


FAMILIES = {family.key: family for family in families()}


@pytest.mark.parametrize(
    ("key", "file", "most"),
    [
        ("wgmma", "gemm_sample.jsonl", (1.05, 1.01, 1.3)),
        ("wgmma", "gemm_sample_weak.jsonl", (1.04, 1.01, 1.2)),
        ("wgmma", "gemm_regret_115.jsonl", (1.05, 1.02, 1.2)),
        ("wgmma", "gemm_regret_141.jsonl", (1.04, 1.02, 1.25)),
        ("wgmma", "gemm_short_k.jsonl", (1.06, 1.02, 1.12)),
        ("gemv", "gemm_sample_few.jsonl", (1.06, 1.01, 1.1)),
        ("gemv", "gemm_sample_launches.jsonl", (1.04, 1.01, 1.1)),
        ("mma", "gemm_sample_launches.jsonl", (1.04, 1.01, 1.1)),
        ("unaligned", "gemm_sample_few.jsonl", (1.06, 1.02, 1.3)),
    ],
)
def test_models_rank_what_was_measured(
    key: str, file: str, most: tuple[float, float, float]
) -> None:
    """Of random GEMMs on an H200, the first choice is near the best of all measured configs."""
    family = FAMILIES[key]
    samples = read_samples([RESULTS / file], GPU, family)
    assert len(samples) > (17 if key == "wgmma" else 10)
    model = family.model_of(GPU)
    one, five = (np.log(regrets(samples, model, family, top)) for top in (1, 5))
    found = np.exp([one.mean(), five.mean(), five.max()])
    assert (found < most).all(), found


def test_the_model_knows_what_configs_are_for() -> None:
    plain = replace(CONFIG, overlap_epilogue=False)
    once = replace(plain, persistent_ctas=0)
    short = replace(LARGE, k=512)

    def time(config: WgmmaConfig, problem: Problem = LARGE) -> float:
        return estimate(problem, config, GPU).microseconds

    assert time(CONFIG) < time(plain) < time(once)
    assert time(plain, short) / time(CONFIG, short) > time(plain) / time(CONFIG)
    small = Problem(512, 512, 512, "f16", "f16")
    narrow = WgmmaConfig((64, 32, 64), 1, 8)
    assert time(narrow, small) < time(replace(narrow, stages=2), small)
    bytes_ = replace(LARGE, dtype="f8E4M3FN", b="col")
    assert time(replace(CONFIG, tile=(128, 256, 128)), bytes_) < 0.6 * time(CONFIG)
    # Rows whose pitch is no multiple of a line take longer.
    assert time(CONFIG, replace(LARGE, k=4104, b="col")) > 1.02 * time(
        CONFIG, replace(LARGE, k=4096 + 64, b="col")
    )


def test_split_k_is_chosen_for_few_tiles_and_a_large_k() -> None:
    deep = Problem(128, 128, 16384, "f16", "f16")
    assert min(e.config.split_k for e in rank(deep, H200)) > 1
    assert first(128, 128, 16384).split_k >= 4
    assert first(512, 512, 16384).split_k >= 2
    assert first(4096, 4096, 4096).split_k == 1


@pytest.mark.parametrize(
    ("rows", "n", "k", "tile"),
    [
        ([512] * 5 + [200] * 3, 4096, 2048, (128, 128, 64)),  # waves of smaller tiles are fuller
        ([512] * 5 + [200] * 3, 7168, 4096, (128, 256, 64)),
        ([120] * 16, 4096, 4096, (128, 256, 64)),
        ([56] * 64, 7168, 2048, (128, 256, 64)),
    ],
)
def test_one_config_is_chosen_for_grouped_gemms(
    rows: list[int], n: int, k: int, tile: tuple[int, int, int]
) -> None:
    problems = [Problem(m, n, k, "bf16", "bf16", b="col") for m in rows]
    sizes = [((64, 128, 64), 1, 8), ((128, 128, 64), 2, 6), ((128, 256, 64), 2, 4)]
    configs = [WgmmaConfig(*given, persistent_ctas=132) for given in sizes]
    assert rank_grouped(configs, problems, GPU)[0].tile == tile


# ----------------------------------------------------------------------------------------- tables
def test_a_table_keeps_both_kinds_of_configs(tmp_path: Path) -> None:
    other = MmaConfig((128, 128, 64), (2, 2), 3)
    swapped = replace(CONFIG, swap_ab=True, cluster=(1, 2), one_cta_per_sm=True)
    for config in (CONFIG, other, swapped):
        tuned_table.record("NVIDIA Test 1", LARGE, config, tmp_path)
    assert tuned_table.lookup("NVIDIA Test 1", LARGE, WgmmaConfig, tmp_path) == swapped
    assert tuned_table.lookup("NVIDIA Test 1", LARGE, MmaConfig, tmp_path) == other
    assert tuned_table.lookup("NVIDIA Test 1", replace(LARGE, k=64), WgmmaConfig, tmp_path) is None


def test_bf16_takes_the_tuned_config_of_f16(tmp_path: Path) -> None:
    short = replace(LARGE, dtype="bf16", out="bf16")
    tuned_table.record("NVIDIA Test 1", LARGE, CONFIG, tmp_path)
    assert tuned_table.lookup("NVIDIA Test 1", short, WgmmaConfig, tmp_path) == CONFIG
    assert (
        tuned_table.lookup("NVIDIA Test 1", replace(short, out="f32"), WgmmaConfig, tmp_path)
        is None
    )
    own = replace(CONFIG, raster_group=4)
    tuned_table.record("NVIDIA Test 1", short, own, tmp_path)
    assert tuned_table.lookup("NVIDIA Test 1", short, WgmmaConfig, tmp_path) == own
    assert tuned_table.lookup("NVIDIA Test 1", LARGE, WgmmaConfig, tmp_path) == CONFIG


def test_a_tuned_config_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = [OrderBy(Row(4096, 4096))] * 3
    chosen = plan(LARGE, layouts, H200)
    measured = replace(CONFIG, raster_group=3)
    assert chosen.config != measured
    tuned_table.record(GPU.name, LARGE, measured, tmp_path)
    monkeypatch.setattr(tuned_table.lookup, "__defaults__", (tmp_path,))
    found = plan(LARGE, layouts, H200)
    assert found.config == measured
    assert f"config     {measured}, from the tuned table" in found.explanation


@pytest.mark.parametrize("shape", [*SHAPES, (3000, 3000, 3000), (5000, 5000, 5000)], ids=str)
def test_a_chosen_config_has_registers_for_the_epilogue(shape: tuple[int, int, int]) -> None:
    problem = Problem(*shape, "f16", "f16", b="col")
    m, n, k = shape
    layouts = [OrderBy(Row(m, k)), OrderBy(Col(k, n)), OrderBy(Row(m, n))]
    for kind in ("values", "tiles"):
        config = plan(problem, layouts, H200, epilogue=kind).config  # type: ignore[arg-type]
        assert config.has_epilogue_registers(loads_tiles=kind == "tiles")


def test_a_gemm_with_an_epilogue_of_many_registers_assembles() -> None:
    """Without an epilogue it takes a tile of more accumulators."""
    n = 3000
    row, whole = OrderBy(Row(n)), OrderBy(Row(n, n))
    kernel = matmul(
        n,
        n,
        n,
        b=OrderBy(Col(n, n)),
        epilogue=lambda x, bias, old: lg.gelu(x + bias + old.to("f32")),
        operands={"bias": lg.Tensor["f32", row], "old": lg.Tensor["f16", whole]},
        target="sm_90a",
    )
    plain = plan(Problem(n, n, n, "f16", "f16", b="col"), [whole, OrderBy(Col(n, n)), whole], H200)
    assert not plain.config.has_epilogue_registers(loads_tiles=True)
    assert kernel.compilation(Options(target=H200)).artifact().cubin
