"""Ragged grouped GEMMs in the simulator, compared with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gemm_kernels import encoded

import lego_mlir as lg
from lego_mlir import Col, OrderBy, RegP, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import MmaConfig, ragged_matmul
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.runtime import launch
from lego_mlir.runtime.simulator import Simulator

SMALL = WgmmaConfig((64, 32, 64), 1, 3)
WARPS = MmaConfig((32, 32, 32), (2, 2), 3)

OLD = 7
"""The elements of C before the launch."""


def check(
    kernel: lg.Kernel,
    shape: tuple[int, int, int],
    offsets: Sequence[int],
    *,
    target: str = "sm_90a",
    dtype: str = "f16",
    order: str = "late",
    columns: tuple[bool, bool] = (False, False),
) -> None:
    """Check that each group of rows is multiplied by its B, and that other rows stay."""
    m, n, k = shape
    random = np.random.default_rng(0)
    a, b = random.integers(-2, 3, (m, k)), random.integers(-2, 3, (len(offsets), k, n))
    c = np.full((m, n), OLD, np.int32 if dtype == "i8" else np.float16)
    expected = c.copy()
    for group, (start, end) in enumerate(zip([0, *offsets], offsets, strict=False)):
        expected[start:end] = a[start:end] @ b[group]
    given = [
        encoded(np.ascontiguousarray(x.swapaxes(-1, -2)) if by_columns else x, dtype).reshape(-1)
        if by_columns
        else encoded(x, dtype)
        for x, by_columns in zip((a, b), columns, strict=True)
    ]
    ends = np.array(offsets, np.int32)
    launch(kernel.compile(target), *given, c, ends, device=Simulator(order=(order, 0)))
    np.testing.assert_array_equal(c, expected)


OFFSETS = [
    [200],
    [96, 96, 150, 200],
    [0, 0, 64, 128, 128, 180, 190],
    [1, 2, 3, 63, 64, 65],
    [0, 0, 0],
]
"""Groups that end within tiles and at their ends, empty and short groups anywhere."""


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("persistent_ctas", [3, 0])
def test_groups_of_any_sizes(offsets: list[int], persistent_ctas: int) -> None:
    config = WgmmaConfig((64, 32, 64), 1, 3, persistent_ctas=persistent_ctas)
    kernel = ragged_matmul(200, 40, 72, len(offsets), config=config, target="sm_90a")
    assert kernel.schedule == "persistent"
    check(kernel, (200, 40, 72), offsets)


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
def test_groups_of_any_sizes_by_mma(offsets: list[int]) -> None:
    kernel = ragged_matmul(200, 33, 50, len(offsets), config=WARPS, target="sm_80")
    check(kernel, (200, 33, 50), offsets, target="sm_80")


@pytest.mark.parametrize("offsets", [[192, 192, 192, 192], [0, 192, 192, 192]], ids=str)
def test_empty_runs_behind_the_last_whole_tile(offsets: list[int]) -> None:
    """Numbers that stand for nothing are of a tile that is there: what is relied on holds."""
    kernel = ragged_matmul(192, 40, 72, len(offsets), config=SMALL, target="sm_90a")
    checked = kernel.compile("sm_90a", check=True)
    a, b = np.ones((192, 72), np.float16), np.ones((len(offsets), 72, 40), np.float16)
    c = np.zeros((192, 40), np.float16)
    launch(checked, a, b, c, np.array(offsets, np.int32), device="sim")
    assert (c == 72).all()


def test_copies_may_arrive_at_any_time() -> None:
    config = WgmmaConfig((128, 64, 64), 2, 2, persistent_ctas=2)
    by_wgmma = ragged_matmul(300, 64, 128, 3, config=config, target="sm_90a")
    by_mma = ragged_matmul(70, 32, 64, 3, config=WARPS, target="sm_80")
    for order in ("early", "random"):
        check(by_wgmma, (300, 64, 128), [100, 170, 290], order=order)
        check(by_mma, (70, 32, 64), [20, 33, 70], order=order, target="sm_80")


def test_one_kernel_serves_all_offsets() -> None:
    # Shared memory has no room for a whole tile of C, whose parts have the same mask of rows.
    config = WgmmaConfig((64, 256, 64), 1, 5)
    kernel = ragged_matmul(130, 16, 64, 2, config=config, target="sm_90a")
    for offsets in ([130, 130], [0, 130], [65, 129]):
        check(kernel, (130, 16, 64), offsets)


def test_many_groups() -> None:
    offsets = [3 * group for group in range(1, 65)]
    check(ragged_matmul(200, 16, 64, 64, config=SMALL, target="sm_90a"), (200, 16, 64), offsets)


def test_column_major_operands() -> None:
    m, n, k, offsets = 72, 48, 64, [40, 72]
    by_columns = OrderBy(RegP([2, k, n], [0, 2, 1]))
    for target, config in (("sm_90a", SMALL), ("sm_80", WARPS)):
        kernel = ragged_matmul(
            m, n, k, 2, a=OrderBy(Col(m, k)), b=by_columns, config=config, target=target
        )
        check(kernel, (m, n, k), offsets, columns=(True, True), target=target)


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "i8"])
def test_8_bit_elements(dtype: str) -> None:
    m, n, k, offsets = 72, 32, 128, [40, 72]
    by_columns = OrderBy(RegP([2, k, n], [0, 2, 1]))
    config = WgmmaConfig((64, 32, 128), 1, 2)
    kernel = ragged_matmul(m, n, k, 2, dtype, b=by_columns, config=config, target="sm_90a")
    check(kernel, (m, n, k), offsets, dtype=dtype, columns=(False, True))


def test_an_epilogue_and_a_chosen_config() -> None:
    kernel = ragged_matmul(70, 32, 64, 2, epilogue=lambda x: x * 2, target="sm_90a")
    assert kernel.schedule == "persistent"
    a, b = np.ones((70, 64), np.float16), np.ones((2, 64, 32), np.float16)
    c, ends = np.zeros((70, 32), np.float16), np.array([5, 69], np.int32)
    launch(kernel.compile("sm_90a"), a, b, c, ends, device=Simulator())
    np.testing.assert_array_equal(c, np.repeat([[128], [0]], [69, 1], axis=0) * np.ones((1, 32)))
    assert "2 groups of 70 rows" in kernel.explain()


def test_matrices_that_tma_cannot_copy_fall_back_to_cp_async() -> None:
    with pytest.warns(UserWarning, match="ragged_matmul: A: .* so the schedule is 'cp_async'"):
        assert ragged_matmul(64, 64, 60, 2, target="sm_90a").schedule == "cp_async"
    with pytest.raises(LegoError, match="A: "):
        ragged_matmul(64, 64, 60, 2, schedule="persistent", target="sm_90a")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": 0}, r"\[64, 64, 64, 0\] are not sizes"),
        ({"groups": 2, "b": OrderBy(Row(64, 64))}, "the layout b = "),
        ({"groups": 2, "config": WgmmaConfig((64, 64, 64), 1, 3, split_k=2)}, "split-K 2"),
        ({"groups": 2, "dtype": "f32"}, "do not multiply 'f32'"),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        ragged_matmul(64, 64, 64, target="sm_90a", **given)
