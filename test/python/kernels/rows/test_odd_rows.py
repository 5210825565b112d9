"""Rows whose length no vector divides: pieces begin with the aligned vector in which a row does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lego_mlir.kernels import cross_entropy_backward, layernorm, softmax, softmax_backward
from lego_mlir.kernels.rows.config import RowsConfig

COLUMNS, VECTOR = 4099, 8
NUMPY = {"f16": np.float16, "f32": np.float32}
CONFIGS = {
    "chosen": None,
    "read again": RowsConfig(1, 4, 2, VECTOR),
    "held": RowsConfig(1, 8, 1, VECTOR, held=True),
    "cluster": RowsConfig(1, 4, 2, VECTOR, held=True, cluster=2),
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
