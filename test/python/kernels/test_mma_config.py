"""MMA configs: what they refuse, what the heuristic chooses, and the tuned table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import TARGETS, Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.mma.heuristic import choose, rank
from lego_mlir.kernels.gemm.problem import Problem

H200 = Target.parse("sm_90a")
PROBLEM = Problem(512, 768, 256, "f16", "f16")
CONFIG = MmaConfig((128, 128, 64), (2, 2), 3)


def test_sizes_of_a_config() -> None:
    assert CONFIG.threads == 128
    assert CONFIG.tiles(PROBLEM) == (4, 6)
    assert CONFIG.k_iterations(replace(PROBLEM, k=250)) == 4
    assert CONFIG.stage_bytes(PROBLEM) == 2 * 128 * 64 * 2
    assert CONFIG.shared_bytes(PROBLEM) == 3 * CONFIG.stage_bytes(PROBLEM)
    wide = replace(PROBLEM, out="f32")
    assert replace(CONFIG, tile=(128, 128, 16)).shared_bytes(wide) == 128 * 128 * 4


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("dtype", "out"), [("f16", "f16"), ("i8", "i32")])
def test_a_config_is_chosen_for_every_size(dtype: str, out: str, target: str) -> None:
    sizes = (1, 2, 15, 16, 17, 31, 32, 33, 64, 65)
    gpu = Target.parse(target)
    for m, n, k in product(sizes, sizes, (1, 65)):
        problem = Problem(m, n, k, dtype, out)
        choose(problem, gpu).check(problem, gpu.optin_shared_bytes)


@pytest.mark.parametrize(
    ("tiles", "raster_group", "high", "wide"),
    [((8, 6), 4, 4, 1), ((7, 12), 4, 1, 4), ((6, 5), 8, 6, 1), ((7, 11), 4, 4, 1)],
)
def test_ctas_take_raster_groups_column_by_column(
    tiles: tuple[int, int], raster_group: int, high: int, wide: int
) -> None:
    down, across = tiles
    problem = Problem(down * 128, across * 128, 64, "f16", "f16")
    layout = replace(CONFIG, raster_group=raster_group).rasterization(problem)
    rows, columns = layout.inv(np.arange(down * across))
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(
        np.ndindex(down, across)
    )
    first = set(zip(rows[: high * wide].tolist(), columns[: high * wide].tolist(), strict=True))
    assert first == set(np.ndindex(high, wide))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tile": (96, 128, 64)}, "powers of two"),
        ({"tile": (16, 128, 64)}, r"not a multiple of 32×16×16"),
        ({"tile": (128, 128, 8)}, r"not a multiple of 32×16×16"),
        ({"tile": (128, 256, 64), "warps": (8, 16)}, "4096 threads are more than the 1024"),
        ({"stages": 1}, "at least 2"),
        ({"raster_group": 0}, "at least one tile"),
        ({"stages": 8}, "262144 bytes of shared memory are 29696 more than the 232448"),
    ],
)
def test_wrong_configs_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        replace(CONFIG, **change).check(PROBLEM, H200.optin_shared_bytes)  # type: ignore[arg-type]


def test_8_bit_elements_have_instructions_with_a_larger_k() -> None:
    problem = replace(PROBLEM, dtype="i8", out="i32")
    replace(CONFIG, tile=(128, 128, 32)).check(problem, H200.optin_shared_bytes)
    with pytest.raises(LegoError, match="not a multiple of 32×16×32"):
        replace(CONFIG, tile=(128, 128, 16)).check(problem, H200.optin_shared_bytes)


@pytest.mark.parametrize("target", [t for t in TARGETS.values() if t.capability >= (8, 0)])
@pytest.mark.parametrize("dtype", ["f16", "i8"])
def test_every_enumerated_config_fits_its_target(target: Target, dtype: str) -> None:
    out = "i32" if dtype == "i8" else "f32"
    for m, n, k in ((1, 1, 1), (16, 8192, 512), (8192, 16, 64), (300, 500, 70), (4096,) * 3):
        problem = Problem(m, n, k, dtype, out)
        for found in rank(problem, target):
            found.config.check(problem, target.optin_shared_bytes)
            assert found.microseconds > 0


def test_large_gemms_are_limited_by_tensor_cores_and_thin_ones_by_memory() -> None:
    square = Problem(8192, 8192, 8192, "f16", "f16")
    thin = Problem(16, 16384, 16384, "f16", "f16")
    assert rank(square, H200)[0].limit == "tensor cores"
    assert rank(thin, H200)[0].limit == "memory"


def test_small_gemms_get_tiles_for_most_multiprocessors() -> None:
    for n in (512, 1024, 2048):
        problem = Problem(n, n, n, "f16", "f16")
        down, across = choose(problem, H200).tiles(problem)
        assert 2 * down * across >= spec_of(H200).multiprocessors


def test_an_explanation_names_the_card_the_config_and_the_limits_of_others() -> None:
    text = matmul(512, 768, 256, schedule="cp_async", config=CONFIG, target="sm_90a").explain()
    assert "512×768×256 of f16" in text
    assert "NVIDIA H200" in text
    assert f"config     {CONFIG}" in text
    assert "stages = 3, unroll = 0" in text
    limits = "latency|tensor cores|cache"
    assert re.search(rf" [0-9.]+ µs  tile .* CTAs? per SM, limited by ({limits})", text)


def test_recorded_configs_are_looked_up(tmp_path: Path) -> None:
    other = replace(PROBLEM, m=1024)
    file = tuned_table.record("NVIDIA Test 1", PROBLEM, CONFIG, tmp_path)
    tuned_table.record("NVIDIA Test 1", other, replace(CONFIG, stages=4), tmp_path)
    tuned_table.record("NVIDIA Test 1", PROBLEM, replace(CONFIG, stages=2), tmp_path)
    assert file == tmp_path / "nvidia-test-1.json"
    assert len(json.loads(file.read_text())) == 2
    assert tuned_table.lookup("NVIDIA Test 1", PROBLEM, MmaConfig, tmp_path) == replace(
        CONFIG, stages=2
    )
    assert tuned_table.lookup("NVIDIA Test 1", other, MmaConfig, tmp_path) == replace(
        CONFIG, stages=4
    )
    assert (
        tuned_table.lookup("NVIDIA Test 1", replace(PROBLEM, a="col"), MmaConfig, tmp_path) is None
    )
    assert tuned_table.lookup("NVIDIA Test 2", PROBLEM, MmaConfig, tmp_path) is None


def test_a_column_major_c_is_recorded_as_the_transpose(tmp_path: Path) -> None:
    columns = Problem(768, 512, 256, "f16", "f16", a="col", b="row", c="col")
    assert columns.transpose == Problem(512, 768, 256, "f16", "f16", a="col", b="row", c="row")
    assert columns.transpose.transpose == columns
    tuned_table.record("NVIDIA Test 1", columns, CONFIG, tmp_path)
    assert tuned_table.lookup("NVIDIA Test 1", columns.transpose, MmaConfig, tmp_path) == CONFIG


def test_a_broken_table_is_an_error_with_its_location(tmp_path: Path) -> None:
    file = tuned_table.file_of("NVIDIA Test 1", tmp_path)
    for text in ("[", '[{"m": 1}]', "[1]"):
        file.write_text(text)
        with pytest.raises(LegoError, match="the tuned table cannot be read") as e:
            tuned_table.lookup("NVIDIA Test 1", PROBLEM, MmaConfig, tmp_path)
        assert e.value.location is not None
        assert e.value.location.file == str(file)
