"""Cache hints of loads and copies, where a kernel asks for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import RowsConfig, pad, softmax, transpose

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}


def doubled(eviction: Any, dtype: str, columns: int, prefetch: Any = None) -> Any:
    """Return a kernel that doubles rows."""

    def kernel(x: Any, y: Any) -> None:
        y[lg.block_id(), :] = x[lg.block_id(), :] * 2.0

    matrix = lg.Tensor[dtype, (3, columns)]
    parameters = {"x": matrix, "y": matrix}
    return lg.kernel(grid=3, warps=1, parameters=parameters, eviction=eviction, prefetch=prefetch)(
        kernel
    )


@pytest.mark.parametrize("columns", [32, 64, 256, 33])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("eviction", "hint"), [("last", "L2::cache_hint"), ("first", "L1::evict_first"), (None, "")]
)
def test_tensors_are_loaded_with_the_priority(
    eviction: Any, hint: str, dtype: str, columns: int
) -> None:
    kernel = doubled(eviction, dtype, columns)
    x = np.random.default_rng(1).standard_normal((3, columns)).astype(DTYPES[dtype])
    y = np.zeros_like(x)
    kernel(x, y, device="sim")
    assert (y == x * 2).all()
    text = kernel.compile("sm_90a").ptx
    if hint:
        assert f"ld.global.{hint}" in text
        assert "ld.global.b" not in text
        assert ("createpolicy.fractional.L2::evict_last" in text) == (eviction == "last")
    else:
        assert "::evict" not in text
        assert "::cache_hint" not in text


def test_older_targets_have_no_priorities() -> None:
    assert "::cache_hint" not in doubled("last", "f32", 256).compile("sm_75").ptx


@pytest.mark.parametrize("columns", [2048, 1300])
def test_copies_have_the_priority_of_evicting_last(columns: int) -> None:
    kernel = softmax(3, columns, config=RowsConfig(1, 2, 2, 4, ctas=2, stages=2))
    text = kernel.compile("sm_90a").ptx
    assert "cp.async.cg.shared.global.L2::cache_hint" in text
    assert "cp.async.cg.shared.global [" not in text
    x = np.random.default_rng(1).standard_normal((3, columns)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(x, y, device="sim")
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_another_priority_is_an_error() -> None:
    with pytest.raises(LegoError, match="eviction is 'first' or 'last', not 'never'"):
        doubled("never", "f32", 256)


@pytest.mark.parametrize("prefetch", [64, 128, 256])
@pytest.mark.parametrize("eviction", ["last", "first", None])
def test_loads_bring_as_many_bytes_as_a_kernel_asks_for(eviction: Any, prefetch: int) -> None:
    kernel = doubled(eviction, "f32", 96, prefetch)
    x = np.random.default_rng(1).standard_normal((3, 96)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(x, y, device="sim")
    assert (y == x * 2).all()
    hint = {"last": ".L2::cache_hint", "first": ".L1::evict_first", None: ""}[eviction]
    assert f"ld.global{hint}.L2::{prefetch}B.b32" in kernel.compile("sm_90a").ptx
    assert "L2::" not in kernel.compile("sm_75").ptx


@pytest.mark.parametrize("prefetch", [32, 0, "128", True])
def test_another_size_of_a_prefetch_is_an_error(prefetch: Any) -> None:
    with pytest.raises(LegoError, match="prefetch is 64, 128 or 256 bytes, not"):
        doubled(None, "f32", 256, prefetch)


def test_large_movements_evict_last_what_they_read() -> None:
    """Those of more than the L2 cache holds, but for those by units of a byte."""
    for rows, dtype, expected in (
        (4096, "f32", "last"),
        (512, "f32", None),
        (8192, "i8", None),
        (8192, "f16", "last"),
    ):
        kernel = transpose(rows, 4096, dtype)
        assert kernel.eviction == expected, (rows, dtype)
        assert kernel.prefetch == 128
    assert pad((4096, 4000), (0, 0), (0, 5), "f32").eviction == "last"
    assert pad((40, 4000), (0, 0), (0, 5), "f32").eviction is None
