"""Kernels on rows whose length only the launch knows: one for each class of lengths."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import KernelChoice
from lego_mlir.kernels import (
    RowsConfig,
    argmax,
    cross_entropy,
    cross_entropy_backward,
    cumsum,
    layernorm,
    layernorm_backward,
    rmsnorm,
    rmsnorm_backward,
    rmsnorm_quantized,
    softmax,
    swiglu,
    topk,
)


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def exponentials(x: Any) -> Any:
    e = np.exp(x.astype(np.float64))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("config", "lengths"),
    [
        (None, (3, 16, 301, 320)),
        (RowsConfig(1, 2, 2, 4), (97, 512, 600)),
        (RowsConfig(1, 2, 1, 4, held=True), (600, 632)),
        (RowsConfig(1, 2, cluster=2), (300,)),
        (RowsConfig(1, 2, 1, 4, ctas=2, stages=2), (632, 640)),
        (RowsConfig(1, 1, 1, 4, cluster=2, ctas=1, stages=2), (572,)),
    ],
)
def test_one_function_takes_any_length(config: RowsConfig | None, lengths: tuple[int, ...]) -> None:
    function = softmax(None, None, config=config)
    assert isinstance(function, KernelChoice)
    for columns in lengths:
        x, y = random(3, columns), np.zeros((3, columns), np.float32)
        function(x, y, device="sim")
        np.testing.assert_allclose(y, exponentials(x), rtol=1e-5, err_msg=str(columns))


def test_rows_of_known_number_and_unknown_pitch() -> None:
    x, y = random(3, 640), np.zeros((3, 700), np.float32)
    for columns in (576, 601):
        softmax(3, None, strided=True)(x[:, :columns], y[:, :columns], device="sim")
        np.testing.assert_allclose(y[:, :columns], exponentials(x[:, :columns]), rtol=1e-5)
        assert not y[:, columns:].any()


def test_lengths_of_a_class_share_a_kernel_that_relies_on_its_bounds() -> None:
    function = softmax(None, None)
    sizes = [{"M": 4, "N": n} for n in (260, 300, 320, 301, 324)]
    first, second, third, odd, next_class = (function.compile(sizes=s) for s in sizes)
    assert first is second is third
    assert first is not odd
    assert first is not next_class
    assert "257 <= N <= 320" in function.explain()
    assert "a kernel for each N of up to 16, 32, 64, 128, 256, 320, 384" in function.explain()
    says = [fact.says for fact in first.facts]
    assert any("257 at least" in text for text in says)
    assert any("320 at most" in text for text in says)


def test_gradients_of_norms() -> None:
    norm, both = layernorm(None, None, save=True), layernorm_backward(None, None)
    for columns in (12, 301):
        x, dy, w = random(5, columns), random(5, columns, seed=1), random(columns, seed=2)
        y, mean, rstd = np.empty_like(x), np.empty(5, np.float32), np.empty(5, np.float32)
        norm(x, w, w, y, mean, rstd, device="sim")
        normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(y, normal * w + w, atol=1e-5)
        dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(w)
        both(x, w, dy, mean, rstd, dx, dw, db, device="sim")
        slope = dy * w
        means = normal * (slope * normal).mean(1, keepdims=True) + slope.mean(1, keepdims=True)
        np.testing.assert_allclose(dx, rstd[:, None] * (slope - means), atol=1e-5)
        np.testing.assert_allclose(dw, (dy * normal).sum(axis=0), atol=1e-5)
        np.testing.assert_allclose(db, dy.sum(axis=0), atol=1e-5)


@pytest.mark.parametrize(
    "config", [RowsConfig(1, 4, 2, 4, held=True), RowsConfig(1, 2, 1, 4, ctas=2, stages=2)]
)
def test_sums_of_columns_of_long_rows(config: RowsConfig) -> None:
    x, dy, w = random(5, 612), random(5, 612, seed=1), random(612, seed=2)
    rstd = abs(random(5))
    dx, dw = np.empty_like(x), np.empty_like(w)
    rmsnorm_backward(None, None, config=config)(x, w, dy, rstd, dx, dw, device="sim")
    np.testing.assert_allclose(dw, (dy * x * rstd[:, None]).sum(axis=0), atol=1e-4)


def test_sums_of_columns_of_short_elements_leave_registers_for_masks() -> None:
    columns = 6152
    x, dy = (random(2, columns, seed=k).astype(ml_dtypes.bfloat16) for k in (0, 1))
    w, mean, rstd = np.ones_like(x[0]), np.zeros(2, np.float32), np.ones(2, np.float32)
    dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(w)
    function = layernorm_backward(2, None, "bf16")
    function(x, w, dy, mean, rstd, dx, dw, db, device="sim")
    normal, slope = x.astype(np.float64), dy.astype(np.float64)
    means = normal * (slope * normal).mean(1, keepdims=True) + slope.mean(1, keepdims=True)
    np.testing.assert_allclose(dx.astype(float), slope - means, atol=0.02)
    np.testing.assert_allclose(dw.astype(float), (slope * normal).sum(axis=0), atol=0.05)
    np.testing.assert_allclose(db.astype(float), slope.sum(axis=0), atol=0.02)


@pytest.mark.parametrize(("rows", "columns"), [(None, 572), (5, None)])
def test_ctas_of_a_cluster_do_not_wait_to_store_what_is_theirs(
    rows: int | None, columns: int | None
) -> None:
    config = RowsConfig(1, 1, 1, 4, cluster=2, ctas=1, stages=2)
    function = rmsnorm(rows, columns, config=config)
    sizes = {"M": 5, "N": 572}
    text = function.compile(sizes={s: sizes[s] for s in function.run_time_sizes.names}).ptx
    assert "barrier.cluster.arrive.relaxed" in text  # where the kernel begins
    assert "barrier.cluster.arrive.aligned" not in text
    x, w = random(5, 572), random(572, seed=1)
    expected = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w
    for order in ("late", "early", "random"):
        y = np.zeros_like(x)
        function(x, w, y, device=runtime.select("sim", order=order))
        np.testing.assert_allclose(y, expected, atol=1e-5)


def test_cross_entropy() -> None:
    options: Any = {"reduction": "mean", "label_smoothing": 0.1}
    loss_of = cross_entropy(None, None, save=True, **options)
    gradient = cross_entropy_backward(None, None, **options)
    for columns in (5, 301):
        x, labels = random(4, columns), np.array([0, columns - 1, -100, 2], np.int32)
        loss, lse, dx = np.empty(1, np.float32), np.empty(4, np.float32), np.empty_like(x)
        loss_of(x, labels, loss, lse, device="sim")
        counted = labels >= 0
        chosen = x[np.arange(4), labels.clip(0)]
        rows = np.log(np.exp(x).sum(axis=1)) - 0.9 * chosen - 0.1 * x.mean(axis=1)
        np.testing.assert_allclose(loss, rows[counted].mean(), rtol=1e-5)
        gradient(x, labels, lse, np.ones(1, np.float32), dx, device="sim")
        hits = 0.9 * np.eye(columns)[labels.clip(0)] + 0.1 / columns
        expected = (exponentials(x) - hits) * counted[:, None] / 3
        np.testing.assert_allclose(dx, expected, atol=1e-6)
    outside = np.array([columns], np.int32)
    cross_entropy(None, None)(x[:1], outside, loss, device="sim")
    assert np.isnan(loss[0])


def test_others() -> None:
    gated, sums, first = swiglu(None, None), cumsum(None, None), argmax(None, None)
    greatest = topk(None, None, k=3)
    for columns in (21, 560):
        x = random(3, columns)
        y, index, most = np.empty_like(x), np.empty(3, np.int32), np.empty(3, np.float32)
        gated(x, x, y, device="sim")
        np.testing.assert_allclose(y, x / (1 + np.exp(-x)) * x, atol=1e-5)
        sums(x, y, device="sim")
        np.testing.assert_allclose(y, x.cumsum(axis=1), atol=1e-4)
        first(x, index, most, device="sim")
        np.testing.assert_array_equal(index, x.argmax(axis=1))
    values, places = np.empty((3, 3), np.float32), np.empty((3, 3), np.int32)
    greatest(x[:, :21].copy(), values, places, device="sim")
    np.testing.assert_array_equal(values, -np.sort(-x[:, :21], axis=1)[:, :3])
    sums(x := random(1, 5000), y := np.empty_like(x), device="sim")  # several pieces
    np.testing.assert_allclose(y, x.cumsum(axis=1), atol=1e-3)


def test_groups_of_columns() -> None:
    quantized = rmsnorm_quantized(None, None, "f32", per="group")
    x, w = random(2, 384), random(384, seed=1)
    y, scale = np.empty((2, 384), ml_dtypes.float8_e4m3fn), np.empty((2, 3), np.float32)
    quantized(x, w, y, scale, device="sim")
    expected = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w
    found = y.astype(np.float32).reshape(2, 3, 128) * scale[..., None]
    np.testing.assert_allclose(found.reshape(2, 384), expected, atol=0.15)
    with pytest.raises(LegoError, match=r"argument 'scale'.* says that it is N//128"):
        quantized(x[:, :100].copy(), w[:100].copy(), y[:, :100].copy(), scale, device="sim")


def test_bad_lengths() -> None:
    x, y = random(2, 5), np.empty((2, 6), np.float32)
    with pytest.raises(LegoError, match=r"argument 'y': its size along dimension 1 is 6"):
        softmax(None, None)(x, y, device="sim")
    with pytest.raises(LegoError, match=r"argument .x.: its size along dimension 1 is 0"):
        softmax(None, None)(x[:, :0], y[:, :0], device="sim")
    values, places = np.empty((2, 7), np.float32), np.empty((2, 7), np.int32)
    with pytest.raises(LegoError, match=r"topk: rows have 5 columns; they may have 7 to 8192"):
        topk(None, None, k=7)(x, values, places, device="sim")
    with pytest.raises(LegoError, match=r"k is at most 8192"):
        topk(None, None, k=9000)
