"""Kernels whose number of rows, or whose strides, only the launch knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import (
    RowsConfig,
    cross_entropy,
    cross_entropy_backward,
    cumsum,
    layernorm,
    rmsnorm_backward,
    softmax,
    swiglu,
    topk,
)

CONFIGS = [
    None,
    RowsConfig(1, 2, 2, 4),
    RowsConfig(1, 2, 2, 4, held=True),
    RowsConfig(1, 2, cluster=2),
]


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def exponentials(x: Any) -> Any:
    e = np.exp(x.astype(np.float64))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("config", CONFIGS)
def test_one_kernel_takes_any_number_of_rows(config: RowsConfig | None) -> None:
    kernel = softmax(None, 600, config=config)
    for rows in (1, 7, 40):
        x, y = random(rows, 600), np.empty((rows, 600), np.float32)
        kernel(x, y, device="sim")
        np.testing.assert_allclose(y, exponentials(x), rtol=1e-5)
    assert len(kernel.classes()) == 1
    empty = np.empty((0, 600), np.float32)
    with pytest.raises(LegoError, match="its size along dimension 0 is 0"):
        kernel(empty, empty.copy(), device="sim")


@pytest.mark.parametrize("rows", [None, 5])
@pytest.mark.parametrize("config", CONFIGS)
def test_rows_may_begin_anywhere(config: RowsConfig | None, rows: int | None) -> None:
    kernel = softmax(rows, 600, config=config, strided=True)
    for pitch in (600, 603, 640):
        x, y = random(5, pitch), np.zeros((5, pitch + 16), np.float32)
        kernel(x[:, :600], y[:, :600], device="sim")
        np.testing.assert_allclose(y[:, :600], exponentials(x[:, :600]), rtol=1e-5)
        assert not y[:, 600:].any()


def test_sums_of_columns() -> None:
    kernel = rmsnorm_backward(None, 96)
    w = random(96, seed=3)
    for rows in (3, 50):
        x, dy, rstd = random(rows, 96), random(rows, 96, seed=1), abs(random(rows))
        dx, dw = np.empty_like(x), np.empty(96, np.float32)
        kernel(x, w, dy, rstd, dx, dw, device="sim")
        np.testing.assert_allclose(dw, (dy * x * rstd[:, None]).sum(axis=0), atol=1e-4)


def test_others() -> None:
    x, w = random(9, 96), random(96)
    y, mean, rstd = np.empty_like(x), np.empty(9, np.float32), np.empty(9, np.float32)
    layernorm(None, 96, save=True)(x, w, w, y, mean, rstd, device="sim")
    np.testing.assert_allclose(mean, x.mean(axis=1), atol=1e-6)
    swiglu(None, 96)(x, x, y, device="sim")
    np.testing.assert_allclose(y, x / (1 + np.exp(-x)) * x, atol=1e-5)
    cumsum(None, 96)(x, y, device="sim")
    np.testing.assert_allclose(y, x.cumsum(axis=1), atol=1e-4)
    values, index = np.empty((9, 3), np.float32), np.empty((9, 3), np.int32)
    topk(None, 96, k=3)(x, values, index, device="sim")
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])


@pytest.mark.parametrize("config", [None, *CONFIGS[1:3]])
def test_cross_entropy(config: RowsConfig | None) -> None:
    x, loss = random(5, 600), np.empty(5, np.float32)
    labels = np.array([0, 599, -100, 600, 7], np.int32)
    cross_entropy(None, 600, config=config)(x, labels, loss, device="sim")
    rows = np.log(np.exp(x).sum(axis=1)) - x[np.arange(5), labels.clip(0, 599)]
    np.testing.assert_allclose(loss[[0, 1, 4]], rows[[0, 1, 4]], rtol=1e-5)
    assert loss[2] == 0
    assert np.isnan(loss[3])


def test_mean_of_any_number_of_losses() -> None:
    mean = cross_entropy(None, 40, reduction="mean", save=True)
    slope = cross_entropy_backward(None, 40, reduction="mean")
    for count in (1, 19):
        x, loss, lse = random(count, 40), np.empty(1, np.float32), np.empty(count, np.float32)
        labels = np.arange(count, dtype=np.int32)
        mean(x, labels, loss, lse, device="sim")
        rows = np.log(np.exp(x).sum(axis=1))
        np.testing.assert_allclose(lse, rows, rtol=1e-5)
        np.testing.assert_allclose(loss, (rows - x[labels, labels]).mean(), rtol=1e-5)
        dx = np.empty_like(x)
        slope(x, labels, lse, np.ones(1, np.float32), dx, device="sim")
        expected = (exponentials(x) - np.eye(count, 40)) / count
        np.testing.assert_allclose(dx, expected, atol=1e-6)
