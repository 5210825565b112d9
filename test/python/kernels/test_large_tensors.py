"""Tensors of more than 2**31 elements, of which the simulator runs a sample of CTAs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import LegoError, kernels, runtime
from lego_mlir.kernels.rows.config import RowsConfig

ROWS, COLUMNS = 65552, 32776
"""More than 2**31 elements together, and rows that are multiples of 16."""

SAMPLE = 4


def _sparse(folder: Path, name: str, shape: tuple[int, ...], dtype: str) -> Any:
    """Return zeros in a file that takes no space where nothing is written."""
    return np.memmap(folder / name, dtype, "w+", shape=shape)


def test_transposes(tmp_path: Path) -> None:
    """The last tile lies beyond 2**31 elements in both matrices."""
    x = _sparse(tmp_path, "x", (ROWS, COLUMNS), "i1")
    y = _sparse(tmp_path, "y", (COLUMNS, ROWS), "i1")
    rng = np.random.default_rng(0)
    for corner in (np.s_[:300, :300], np.s_[-300:, -300:]):
        x[corner] = rng.integers(1, 100, (300, 300))
    kernels.transpose(None, COLUMNS, "i8")(x, y, device=runtime.select("sim", sample=SAMPLE))
    assert (y[:16, :16] == x[:16, :16].T).all()
    assert (y[-8:, -16:] == x[-16:, -8:].T).all()  # of the last tile


@pytest.mark.parametrize(
    ("columns", "config"),
    [
        (32768, RowsConfig(1, 8, cluster=4)),
        (COLUMNS, RowsConfig(1, 16, 1, 8, cluster=2, ctas=ROWS // 4, stages=3)),
    ],
    ids=["in registers", "in stages"],
)
def test_rows(tmp_path: Path, columns: int, config: RowsConfig) -> None:
    """Offsets of the last rows need 64 bits."""
    x = _sparse(tmp_path, "x", (ROWS, columns), "f2")
    y = _sparse(tmp_path, "y", (ROWS, columns), "f2")
    x[-1, :5] = np.arange(5)
    softmax = kernels.softmax(None, columns, "f16", config=config)
    softmax(x, y, device=runtime.select("sim", sample=SAMPLE))
    row = np.exp(x[-1].astype(np.float64) - 4)
    np.testing.assert_allclose(y[-1], row / row.sum(), atol=1e-3)
    assert any(promised.is_wide for promised in softmax.classes())


@pytest.mark.parametrize("rows", [ROWS, None])
def test_odd_rows(tmp_path: Path, rows: int | None) -> None:
    """Of one dimension the matrix has more elements than numbers of 4 bytes count."""
    columns = COLUMNS + 1
    x, y = (_sparse(tmp_path, name, (ROWS, columns), "f2") for name in "xy")
    x[-1, :5] = np.arange(5)
    softmax = kernels.softmax(rows, columns, "f16", config=RowsConfig(1, 8, 1, 8, held=True))
    softmax(x, y, device=runtime.select("sim", sample=SAMPLE))
    row = np.exp(x[-1].astype(np.float64) - 4)
    np.testing.assert_allclose(y[-1], row / row.sum(), atol=1e-3)


def test_samples_have_the_first_and_the_last_cta() -> None:
    line = lg.Tensor["i32", "N"]

    def count(y: Any) -> None:
        y.tile(32)[lg.block_id()] = lg.arange(32) + 1

    kernel = lg.kernel(grid=lambda y: y.shape[0] // 32, warps=1, parameters={"y": line})(count)
    y = np.zeros(32 * 100, np.int32)
    kernel(y, device=runtime.select("sim", sample=10))
    written = (y.reshape(100, 32) == np.arange(1, 33)).all(axis=1)
    assert written[0]
    assert written[-1]
    assert 2 <= written.sum() <= 10
    assert not y.reshape(100, 32)[~written].any()
    with pytest.raises(LegoError, match="runs no sample of 0 CTAs"):
        runtime.select("sim", sample=0)
