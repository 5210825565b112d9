"""Rows whose length no vector divides: pieces begin with the aligned vector in which a row does."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from lego_mlir import runtime
from lego_mlir.kernels import (
    cross_entropy,
    cross_entropy_backward,
    layernorm,
    layernorm_backward,
    log_softmax,
    rmsnorm,
    rmsnorm_backward,
    softmax,
    softmax_backward,
)
from lego_mlir.kernels.rows.config import RowsConfig

problem = import_module("lego_mlir.kernels.rows.problem")

COLUMNS, VECTOR = 4099, 8
NUMPY = {"f16": np.float16, "f32": np.float32}
CONFIGS = {
    "chosen": None,
    "read again": RowsConfig(1, 4, 2, VECTOR),
    "held": RowsConfig(1, 8, 1, VECTOR, held=True),
    "cluster": RowsConfig(1, 4, 2, VECTOR, held=True, cluster=2),
    "read again by a cluster": RowsConfig(1, 4, 1, VECTOR, cluster=2),
    "whole in a cluster": RowsConfig(1, 4, cluster=2),
    "several rows": RowsConfig(2, 8),
    "persistent": RowsConfig(1, 8, ctas=2),
    "stages": RowsConfig(1, 4, 1, VECTOR, cluster=2, ctas=2, stages=3),
}
IN_VECTORS = ["cluster", "stages"]


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def exponentials(x: Any) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check(found: Any, want: Any) -> None:
    """Compare numbers of f16, which may be short of bits where they are small."""
    np.testing.assert_allclose(found.astype(np.float64), want, rtol=1.5e-3, atol=1e-7)


@pytest.mark.parametrize("rows", [5, None])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_softmax(config: RowsConfig | None, rows: int | None) -> None:
    x = random(5, COLUMNS)
    y = np.full_like(x, np.nan)
    softmax(rows, COLUMNS, "f16", config=config)(x, y, device="sim")
    check(y, exponentials(x))


@pytest.mark.parametrize("config", [None, CONFIGS["stages"]])
def test_gradient_of_softmax(config: RowsConfig | None) -> None:
    y, dy = (100 * exponentials(random(3, COLUMNS))).astype(np.float16), random(3, COLUMNS, seed=1)
    dx = np.full_like(y, np.nan)
    softmax_backward(3, COLUMNS, "f16", config=config)(y, dy, dx, device="sim")
    a, b = y.astype(np.float64), dy.astype(np.float64)
    np.testing.assert_allclose(
        dx.astype(np.float64), a * (b - (a * b).sum(-1, keepdims=True)), rtol=2e-3, atol=1e-3
    )


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_gradient_of_cross_entropy(dtype: str) -> None:
    x = random(3, COLUMNS).astype(NUMPY[dtype])
    labels = np.array([0, COLUMNS - 1, -100], np.int32)
    lse = np.log(np.exp(x.astype(np.float32)).sum(-1))
    dloss = np.array([1000, -2000, 3000], np.float32)
    found = np.full_like(x, np.nan)
    kernel = cross_entropy_backward(3, COLUMNS, dtype)
    kernel(x, labels, lse, dloss, found, device="sim")
    assert "st.global.v4.b32" in kernel.compile("sm_90a").ptx
    want = exponentials(x)
    want[[0, 1], labels[:2]] -= 1
    want *= np.where(labels >= 0, dloss, 0)[:, None]
    np.testing.assert_allclose(found.astype(np.float64), want, rtol=2e-3, atol=1e-4)


READ = {
    "chosen": None,
    "held": RowsConfig(1, 8, 1, 4, held=True),
    "clusters": RowsConfig(1, 4, 2, 4, cluster=2),
    "one piece": RowsConfig(1, 16, 16, 4),
    "two pieces": RowsConfig(1, 16, 8, 4),
}


@pytest.mark.parametrize("columns", [32770, 36861])
@pytest.mark.parametrize("config", READ.values(), ids=READ.keys())
def test_rows_that_are_only_read(config: RowsConfig | None, columns: int) -> None:
    """The last elements of 36861 columns are those of a piece, or of another one, by the row."""
    x = random(5, columns).astype(np.float32)
    x[:, [0, -1]] = 9  # others of neighbours would be seen
    labels = np.array([0, columns - 1, -100, 7, columns // 2], np.int32)
    kernel = cross_entropy(5, columns, "f32", config=config)
    assert "ld.global.v4.b32" in kernel.compile("sm_90a").ptx
    loss = np.full(5, np.nan, np.float32)
    kernel(x, labels, loss, device="sim")
    a = x.astype(np.float64)
    want = np.log(np.exp(a).sum(-1)) - a[np.arange(5), labels]
    np.testing.assert_allclose(loss, np.where(labels < 0, 0, want), rtol=1e-5)


@pytest.mark.parametrize("name", IN_VECTORS)
def test_pieces_between_the_ends_are_vectors_that_nobody_waits_for(name: str) -> None:
    config = CONFIGS[name]
    assert config is not None
    text = softmax(5, COLUMNS, "f16", config=config).compile("sm_90a").ptx
    pieces = config.count(COLUMNS + VECTOR - 1)
    assert text.count("st.global.v4.b32") == config.piece * pieces
    # Of the first piece and the last one.
    assert text.count("st.global.b16") <= 2 * config.piece * config.vector
    assert "barrier.cluster.arrive.aligned" not in text


def test_what_is_not_aligned_with_rows_is_accessed_by_element() -> None:
    x, w = random(2, COLUMNS), random(COLUMNS, seed=1)
    y = np.full_like(x, np.nan)
    layernorm(2, COLUMNS, "f16")(x, w, w, y, device="sim")
    a, b = x.astype(np.float64), w.astype(np.float64)
    normal = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.astype(np.float64), normal * b + b, rtol=2e-3, atol=1e-3)
    z = x.copy()
    softmax(2, COLUMNS, "f16", in_place=True)(z, z, device="sim")
    check(z, exponentials(x))


def norm_of(x: Any) -> tuple[Any, Any, Any]:
    """Return the mean of each row, 1 over its deviation, and the normal rows."""
    a = x.astype(np.float64)
    mean, rstd = a.mean(-1), 1 / np.sqrt(a.var(-1) + 1e-5)
    return mean, rstd, (a - mean[:, None]) * rstd[:, None]


SHIFTED = CONFIGS | {
    "stages": RowsConfig(1, 4, 1, VECTOR, cluster=2, ctas=8, stages=3),
    "stages of rows that begin elsewhere": RowsConfig(1, 4, 2, VECTOR, ctas=3, stages=2),
}
"""Of persistent CTAs, with three rows and two."""


def orders(name: str) -> list[str]:
    """Return in which orders the simulator runs a config: each one, if its copies take time."""
    return ["late", "early", "random"] if name in ("chosen", "stages") else ["random"]


@pytest.mark.parametrize("name", SHIFTED)
def test_what_belongs_to_columns_is_shifted_for_many_rows(name: str) -> None:
    config = SHIFTED[name]
    x, w, b = random(19, COLUMNS), random(COLUMNS, seed=1), random(COLUMNS, seed=2)
    x += 100 * np.arange(19, dtype=np.float16)[:, None]
    kernel = layernorm(None, COLUMNS, "f16", config=config)
    assert "w_shifted" in kernel.explain()
    want = norm_of(x)[2] * w.astype(np.float64) + b
    for order in orders(name):
        y = np.full_like(x, np.nan)
        kernel(x, w, b, y, device=runtime.select("sim", order=order))
        np.testing.assert_allclose(y.astype(np.float64), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("rows", [5, 19])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_columns_are_shifted_for_any_dtypes(
    dtype: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem, "_COPIED_BYTES", 0)
    config = replace(SHIFTED["stages"], vector=16 // np.dtype(NUMPY[dtype]).itemsize)
    x, w = (a.astype(NUMPY[dtype]) for a in (random(rows, COLUMNS - 1), random(COLUMNS - 1)))
    y = np.full_like(x, np.nan)
    rmsnorm(rows, COLUMNS - 1, dtype, weight="f32", config=config)(
        x, w.astype(np.float32), y, device="sim"
    )
    a = x.astype(np.float64)
    want = a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-6) * w.astype(np.float32)
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["chosen", "whole in a cluster", "persistent", "stages"])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_sums_of_columns_are_shifted_back(dtype: str, name: str) -> None:
    config = SHIFTED[name]
    if config is not None:
        config = replace(config, vector=16 // np.dtype(NUMPY[dtype]).itemsize)
    x, dy, w = (
        a.astype(NUMPY[dtype])
        for a in (random(19, COLUMNS), random(19, COLUMNS, seed=1), random(COLUMNS, seed=2))
    )
    mean, rstd, normal = norm_of(x)
    kernel = layernorm_backward(None, COLUMNS, dtype, config=config)
    saved = mean.astype(np.float32), rstd.astype(np.float32)
    slope = dy.astype(np.float64) * w
    means = normal * (slope * normal).mean(-1, keepdims=True) + slope.mean(-1, keepdims=True)
    want = rstd[:, None] * (slope - means), (dy * normal).sum(0), dy.astype(np.float64).sum(0)
    for order in orders(name):
        found = [np.full_like(a, np.nan) for a in (x, w, w)]
        kernel(x, w, dy, *saved, *found, device=runtime.select("sim", order=order))
        for one, right in zip(found, want, strict=True):
            np.testing.assert_allclose(one.astype(np.float64), right, rtol=2e-3, atol=5e-3)


@pytest.mark.parametrize(
    ("rows", "ctas", "ring_bytes", "order"),
    [
        (19, 3, 0, "late"),
        (19, 3, 0, "early"),
        (19, 3, 60000, "random"),
        (None, 3, 0, "random"),
        (11, 10, 60000, "late"),
    ],
)
def test_columns_are_added_up_by_any_number_of_ctas(
    rows: int | None, ctas: int, ring_bytes: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem, "_COPIED_BYTES", 0)
    config = RowsConfig(1, 4, 1, VECTOR, cluster=2, ctas=ctas, stages=2, ring_bytes=ring_bytes)
    columns, count = COLUMNS // 2, rows or 19
    x, dy = random(count, columns), random(count, columns, seed=1)
    w = random(columns, seed=2)
    dx, dw = np.full_like(x, np.nan), np.full_like(w, np.nan)
    kernel = rmsnorm_backward(rows, columns, "f16", config=config)
    assert f"dw_of_ctas: f32 {ctas + VECTOR - 1}×" in kernel.explain()
    a = x.astype(np.float64)
    rstd = 1 / np.sqrt((a * a).mean(-1) + 1e-6)
    device = runtime.select("sim", order=order)
    kernel(x, w, dy, rstd.astype(np.float32), dx, dw, device=device)
    normal, slope = a * rstd[:, None], dy.astype(np.float64) * w
    want = rstd[:, None] * (slope - normal * (slope * normal).mean(-1, keepdims=True))
    near = {"rtol": 2e-3, "atol": 5e-3}
    np.testing.assert_allclose(dx.astype(np.float64), want, **near)
    np.testing.assert_allclose(dw.astype(np.float64), (dy * normal).sum(0), **near)


def test_rows_that_are_better_aligned_than_their_length_says() -> None:
    """Vectors stay those of a thread's columns where one row alone, or a stride, allows wider."""
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((1, 4434)).astype(np.float16), np.full((1, 4434), 77, np.float32)
    softmax(1, 4434, "f16", out="f32")(x, y, device="sim")
    exponentials = np.exp(x.astype(np.float64))
    assert np.allclose(y, exponentials / exponentials.sum(), rtol=1e-5)

    x, y = rng.standard_normal((2, 14448)).astype(np.float32), np.full((2, 14448), 77, np.float32)
    log_softmax(2, 14437, "f32", strided=True)(x[:, :14437], y[:, :14437], device="sim")
    shifted = x[:, :14437].astype(np.float64)
    want = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    assert np.allclose(y[:, :14437], want, rtol=1e-5, atol=1e-5)
    assert (y[:, 14437:] == 77).all()
