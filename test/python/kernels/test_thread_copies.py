"""The time of copies by producer warps, and GEMMs whose operands are copied so by choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lego_mlir import Col, Layout, OrderBy, Row
from lego_mlir.hardware.limits import RESERVED_SHARED_BYTES
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.planner import Plan, plan, ways
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.thread_copies import (
    MOST_SHARED,
    copy_work,
    joined_microseconds,
    with_room_for_copies,
)
from lego_mlir.kernels.gemm.wgmma.candidates import candidates
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, shared_bytes_of
from lego_mlir.kernels.gemm.wgmma.work import work_of

TARGET = Target.parse("sm_90a")
GPU = spec_of(TARGET)


def planned(m: int, n: int, k: int, c: str = "row") -> Plan:
    """Return the plan of a GEMM of a row-major A and a column-major B."""
    layouts: list[Layout] = [OrderBy(Row(m, k)), OrderBy(Col(k, n)), OrderBy(Row(m, n))]
    if c == "col":
        layouts[2] = OrderBy(Col(m, n))
    return plan(Problem(m, n, k, "f16", "f16", b="col", c=c), layouts, TARGET)


def test_a_multiprocessor_issues_the_copies_of_all_its_tiles() -> None:
    """Of 96 k in two iterations; A is copied by 4 bytes, B by 2."""
    problem = Problem(128, 64, 96, "f16", "f16", b="col")
    table = ConfigTable.of([WgmmaConfig((64, 32, 64), 1, 3), WgmmaConfig((64, 32, 64), 1, 2)], 2)
    done = work_of(problem, table, GPU)
    found = copy_work(problem, {"a": 4, "b": 2}, table, done)
    lanes_of_a, lanes_of_b = 64 * 64 * 2 / 4, 32 * 64 * 2 / 2
    assert found.short_copies.tolist() == [2 * lanes_of_a / 32] * 2
    assert found.element_copies.tolist() == [2 * lanes_of_b / 32] * 2
    assert found.short_rounds.tolist() == [2 / 2, 2 / 1]
    assert found.element_rounds.tolist() == [2, 2]


def test_what_copies_cannot_be_takes_infinitely_long() -> None:
    problem, model = Problem(512, 512, 512, "f16", "f16", b="col"), GPU.unaligned_model
    assert model is not None
    configs = [
        WgmmaConfig((64, 64, 64), 1, 3),
        WgmmaConfig((64, 64, 64), 1, 3, cluster=(2, 1)),  # shares tiles of B
        WgmmaConfig((64, 64, 64), 1, 3, cluster=(1, 2)),
        WgmmaConfig((64, 64, 64), 1, 3, cluster=(2, 1), swap_ab=True),
        WgmmaConfig((128, 64, 64), 2, 3),
    ]
    table = ConfigTable.of(configs, 2)
    done = work_of(problem, table, GPU)
    for widths, impossible in (
        ({"a": 4}, [0, 0, 1, 1, 0]),
        ({"b": 4}, [0, 1, 0, 0, 0]),
        ({"a": 2}, [0, 0, 1, 1, 1]),
    ):
        us = np.ones(len(table))
        times = joined_microseconds(us, copy_work(problem, widths, table, done), model)
        assert np.isinf(times).tolist() == [bool(n) for n in impossible]
        assert (times > us).all()


@pytest.mark.parametrize("sizes", [(70, 3336, 12994), (12454, 76, 1746)])
def test_rings_leave_room_for_the_cache(sizes: tuple[int, int, int]) -> None:
    problem = Problem(*sizes, "f16", "f16", b="col")
    table = candidates(problem, TARGET, GPU, copies_by_threads=True)
    done = work_of(problem, table, GPU)
    found = with_room_for_copies(problem, table, done, stores_by_threads=False)
    assert (found.stages <= table.stages).all()
    assert (found.stages < table.stages).any()
    taken = done.side_by_side * (shared_bytes_of(problem, found) + RESERVED_SHARED_BYTES)
    assert ((taken <= MOST_SHARED) | (found.stages == 2)).all()


def test_two_ctas_of_a_multiprocessor_have_slices_only_where_threads_copy() -> None:
    problem = Problem(70, 3336, 12993, "f16", "f16", b="col")
    plain = candidates(problem, TARGET, GPU)
    copied = candidates(problem, TARGET, GPU, copies_by_threads=True)
    assert len(copied) > len(plain)
    more = work_of(problem, copied, GPU)
    assert (more.side_by_side[(copied.through_l2 > 0) & (more.busy > 132)] == 2).any()


@pytest.mark.parametrize("c", ["row", "col"])
def test_a_large_operand_beside_a_small_one_is_copied_by_threads(c: str) -> None:
    """Rows of 12994 elements begin at multiples of 4 bytes; B has 87 MB, A 2."""
    found = planned(70, 3336, 12994, c)
    assert isinstance(found.config, WgmmaConfig)
    assert found.config.copied_by_threads == ("b" if c == "row" else "a")
    assert list(found.remedies.repitched) == ["a"]
    assert "copied by threads" in found.explanation
    extra = found.options[0].extra_us
    assert 0 < extra < 4


def test_operands_that_are_read_often_are_repitched() -> None:
    found = planned(2500, 2502, 2506)
    assert isinstance(found.config, WgmmaConfig)
    assert not found.config.copied_by_threads
    assert sorted(found.remedies.repitched) == ["a", "b"]


def test_all_ways_of_a_gemm_fit() -> None:
    m, n, k = 70, 336, 1294
    layouts = [OrderBy(Row(m, k)), OrderBy(Col(k, n)), OrderBy(Row(m, n))]
    found = ways(Problem(m, n, k, "f16", "f16", b="col"), layouts, TARGET)
    names = {config.copied_by_threads for config in found if isinstance(config, WgmmaConfig)}
    assert names - {""}
    config = next(c for c in found if isinstance(c, WgmmaConfig) and c.copied_by_threads == "ab")
    kernel = matmul(m, n, k, b=layouts[1], config=replace(config, raster_group=1))
    result = kernel.run(device="sim")
    assert result.comparison.equal, str(result.comparison)
