"""Grouped GEMMs over ragged K in the simulator, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gemm_kernels import encoded

from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import ragged_k_matmul
from lego_mlir.runtime import launch
from lego_mlir.runtime.simulator import Simulator


def expected(a: Any, b: Any, offsets: list[int]) -> Any:
    starts = [0, *offsets[:-1]]
    return np.stack([a[i:j].T @ b[i:j] for i, j in zip(starts, offsets, strict=True)])


@pytest.mark.parametrize(
    ("shape", "offsets"),
    [
        ((200, 100, 72), [33, 33, 130, 180]),  # groups end within tiles, one is empty
        ((128, 16, 16), [64, 128]),
        ((64, 8, 24), [0, 0, 64]),
        ((70, 130, 129), [1, 70]),  # several tiles of C, none full
    ],
)
def test_groups(shape: tuple[int, int, int], offsets: list[int]) -> None:
    m, n, k = shape
    random = np.random.default_rng(0)
    a, b = random.integers(-2, 3, (m, k)), random.integers(-2, 3, (m, n))
    kernel = ragged_k_matmul(m, n, k, len(offsets), "bf16", out="f32", target="sm_90a")
    for order in ("late", "early", "random"):
        c = np.full((len(offsets), k, n), np.nan, np.float32)
        given = encoded(a, "bf16"), encoded(b, "bf16"), c, np.array(offsets, np.int32)
        launch(kernel.compile(), *given, device=Simulator(order=(order, 0)))
        np.testing.assert_array_equal(c, expected(a, b, offsets), err_msg=order)


def test_rows_of_other_groups_do_not_count_whatever_they_hold() -> None:
    a, b = np.ones((64, 16), np.float16), np.ones((64, 16), np.float16)
    a[10:50], b[10:50] = np.nan, np.inf
    c = np.empty((2, 16, 16), np.float16)
    ragged_k_matmul(64, 16, 16, 2, target="sm_90a")(a, b, c, np.array([10, 10], np.int32))
    assert (c[0] == 10).all()
    assert (c[1] == 0).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"dtype": "i8"}, "f16 or bf16, not of 'i8'"), ({"groups": 0}, "are not sizes")],
)
def test_mistakes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        ragged_k_matmul(**({"m": 64, "n": 16, "k": 16, "groups": 2} | given))
