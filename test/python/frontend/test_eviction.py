"""Cache eviction priorities of loads and copies, where a kernel asks for one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import RowsConfig, softmax

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}


def doubled(eviction: Any, dtype: str, columns: int) -> Any:
    """Return a kernel that doubles rows."""

    def kernel(x: Any, y: Any) -> None:
        y[lg.block_id(), :] = x[lg.block_id(), :] * 2.0

    matrix = lg.Tensor[dtype, (3, columns)]
    parameters = {"x": matrix, "y": matrix}
    return lg.kernel(grid=3, warps=1, parameters=parameters, eviction=eviction)(kernel)


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
        assert "cache_hint" not in text


def test_older_targets_have_no_priorities() -> None:
    assert "cache_hint" not in doubled("last", "f32", 256).compile("sm_75").ptx


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
