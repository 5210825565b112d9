"""Accesses at index tiles of tensors whose sizes only the launch knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import LegoError

SIZES = [(5, 7, 3), (100, 64, 70), (33, 48, 64)]
"""Rows and columns of a table, and the indices."""


def _tiles(index: Any) -> Any:
    return lg.ceildiv(index.shape[0], 32)


TABLE = lg.Tensor["f32", "M, N<=64"]
LOOKED_UP = lg.Tensor["f32", "K, N"]
INDEX, COUNTS = lg.Tensor["i32", "K"], lg.Tensor["i32", "M"]
VALUES, PLACED = lg.Tensor["f32", "K"], lg.Tensor["f32", "M"]


@lg.kernel(grid=_tiles, warps=2)
def rows(x: TABLE, index: INDEX, y: LOOKED_UP) -> None:  # type: ignore[valid-type]
    k = lg.block_id()
    y.tile(32, 64)[k, 0] = x[index.tile(32)[k], :]


@lg.kernel(grid=_tiles, warps=1)
def place(index: INDEX, x: VALUES, y: PLACED) -> None:  # type: ignore[valid-type]
    k = lg.block_id()
    y[index.tile(32)[k]] = x.tile(32)[k]


@lg.kernel(grid=_tiles, warps=1)
def count(index: INDEX, y: COUNTS) -> None:  # type: ignore[valid-type]
    lg.atomic_add(y, index.tile(32)[lg.block_id()], 1)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_elements_at_index_tiles(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    x = rng.standard_normal((m, n)).astype(np.float32)
    index = rng.integers(0, m, k).astype(np.int32)
    y = np.full((k, n), np.nan, np.float32)
    rows(x, index, y, device="sim")
    np.testing.assert_array_equal(y, x[index])
    counts = np.zeros(m, np.int32)
    count(index, counts, device="sim")
    np.testing.assert_array_equal(counts, np.bincount(index, minlength=m))
    places = rng.permutation(3 * m)[:k].astype(np.int32)
    placed, expected = (np.zeros(3 * m, np.float32) for _ in range(2))
    place(places, x.reshape(-1)[: len(places)], placed, device="sim")
    expected[places] = x.reshape(-1)[: len(places)]
    np.testing.assert_array_equal(placed, expected)


def test_each_pass_keeps_what_is_gathered() -> None:
    m, n, k = SIZES[2]
    index = np.arange(k, dtype=np.int32) % m
    assert rows.check_each_step(np.ones((m, n), np.float32), index)


def test_an_index_beyond_the_end() -> None:
    """Only the launch knows the end, and the kernel checks it."""
    x, y = np.zeros((33, 48), np.float32), np.zeros((1, 48), np.float32)
    with pytest.raises(LegoError, match="index 0 of 'x' is 33, its size is 33"):
        rows(x, np.array([33], np.int32), y, device="sim")
