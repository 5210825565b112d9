"""Layouts on tiles of indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir import GenP, Layout, OrderBy, RegP, Row, swizzle

LAYOUTS = [
    OrderBy(Row(8, 8)),
    OrderBy(RegP([4, 2, 8], [1, 2, 0])),
    OrderBy(Row(8, 8)).TileBy([2, 4], [4, 2]),
    OrderBy(GenP([8, 8], swizzle(1, 1, 8))),
]


LINE = lg.Tensor["i32", (64,)]
ROWS = lg.Tensor["i32", "M, 16"]


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(LAYOUTS), st.permutations(range(64)))
def test_offsets_and_indices(layout: Layout, order: list[int]) -> None:
    @lg.kernel(grid=1, warps=1)
    def both(x: LINE, y: LINE, first: LINE) -> None:
        index = layout.inv(x[:])
        first[:] = index[0]
        y[:] = layout.apply(*index)

    x = np.array(order, np.int32)
    y, first = np.empty_like(x), np.empty_like(x)
    both(x, y, first, device="sim")
    assert (y == x).all()
    assert (first == [layout.inv(int(n))[0] for n in x]).all()


@pytest.mark.parametrize("rows", [3, 16])
def test_sizes_that_the_launch_knows_and_scalars(rows: int) -> None:
    layout = lg.parse_layout("OrderBy(Row(M, 16))")

    @lg.kernel(grid=lambda x: x.shape[0], warps=1)
    def offsets(x: ROWS) -> None:
        x[lg.block_id(), :] = layout.apply(lg.block_id(), lg.arange(16))

    x = np.empty((rows, 16), np.int32)
    offsets(x, device="sim")
    assert (x.reshape(-1) == np.arange(16 * rows)).all()
