"""Tiles that begin every `step` elements: loads of some again, and the order of their stores."""

# ruff: noqa: F821 (Tensor["f32", ...] is no forward reference)

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg

X = np.random.default_rng(3).standard_normal(150).astype(np.float32)


def test_loads_overlap_and_end_where_the_tensor_does() -> None:
    @lg.kernel(grid=lambda y: y.shape[0], warps=1)
    def sums(x: lg.Tensor["f32", "150"], y: lg.Tensor["f32", "8"]) -> None:
        y[lg.block_id()] = lg.sum(x.tile(64, step=16)[lg.block_id()])

    y = np.zeros(8, np.float32)
    sums(X, y, device="sim")
    np.testing.assert_allclose(y, [X[16 * k :][:64].sum() for k in range(8)], atol=1e-5)


@pytest.mark.parametrize(
    ("steps", "is_exclusive", "barriers"), [(16, False, 0), (4, False, 1), (4, True, 0)]
)
def test_stores_wait_for_each_other_where_they_meet(
    steps: int, is_exclusive: bool, barriers: int
) -> None:
    """If the kernel promises that they do not, they never wait."""

    @lg.kernel(grid=1, warps=2)
    def store(
        x: lg.Tensor["f32", "150"], n: lg.Tensor["i32", "1"], y: lg.Tensor["f32", "150"]
    ) -> None:
        tiles = (y.exclusive() if is_exclusive else y).tile(64, step=4)
        first = n[0].below(4)
        tile: Any = x.tile(64, step=4)[first]
        own = lg.arange(64) < 4 * steps  # so the promise is kept
        tiles[first] = lg.restrict(tile, own) if is_exclusive else tile
        tiles[first + steps] = -x.tile(64, step=4)[first + steps]

    y = np.zeros_like(X)
    store(X, np.array([2], np.int32), y, device="sim")
    want = np.zeros_like(X)
    want[8:72] = X[8:72]
    begin = 8 + 4 * steps
    if is_exclusive:
        want[begin:] = 0
    want[begin : begin + 64] = -X[begin : begin + 64]
    np.testing.assert_array_equal(y, want)
    assert store.compile("sm_90a").ptx.count("bar") == barriers
