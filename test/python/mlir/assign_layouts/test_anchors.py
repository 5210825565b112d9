"""Loads and stores get coalesced layouts, by the memory's layout; dots have those of mma.sync."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.algebra import parse_layout
from lego_mlir.analysis.distributed import coalesced, mma_accumulator
from lego_mlir.analysis.distributed.mma_grids import (
    accumulator,
    accumulator_grid,
    operand_a,
    operand_b,
)
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import memory_order, widest_vector

ROW = "OrderBy(Row(64, 128))"
COLUMN = "OrderBy(Col(64, 128))"
TILED = "OrderBy(Row(64, 128)).TileBy([4, 8], [16, 16])"
MORTON = "OrderBy(RegP([8, 8, 16, 8], [0, 2, 1, 3])).GroupBy([64, 128])"


@pytest.mark.parametrize(
    ("text", "dims", "shape", "order"),
    [
        (ROW, (0, 1), (16, 32), (0, 1)),
        (COLUMN, (0, 1), (16, 32), (1, 0)),
        (ROW, (0,), (64,), (0,)),
        (ROW, (1, 0), (32, 16), (1, 0)),
        (TILED, (2, 3), (16, 16), (0, 1)),
        (TILED, (1, 2, 3), (8, 16, 16), (1, 0, 2)),
        (MORTON, (0, 1), (64, 128), (0, 1)),
        (ROW, (0, 1), (64, 1), (1, 0)),
    ],
)
def test_dimensions_in_the_order_of_memory(
    text: str, dims: tuple[int, ...], shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    assert memory_order(parse_layout(text), dims, shape) == order


@pytest.mark.parametrize(
    ("text", "dim", "width"),
    [
        (ROW, 1, 16),
        (ROW, 0, 1),
        (COLUMN, 0, 16),
        (MORTON, 1, 8),
        ("OrderBy(Row(64, 100))", 1, 4),
        ("OrderBy(Row(64, 101))", 1, 1),
        ("OrderBy(Row(101))", 0, 16),
    ],
)
def test_widest_vectors(text: str, dim: int, width: int) -> None:
    assert widest_vector(parse_layout(text), dim, 16) == width


@given(st.data())
def test_vectors_are_contiguous_and_aligned(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from([2, 3, 4, 6, 8]), min_size=2, max_size=4))
    order = data.draw(st.permutations(range(len(sizes))))
    cut = data.draw(st.integers(1, len(sizes) - 1))
    shape = [int(np.prod(sizes[:cut])), int(np.prod(sizes[cut:]))]
    layout = parse_layout(f"OrderBy(RegP({sizes}, {list(order)})).GroupBy({shape})")
    offsets = np.asarray(layout.apply(*np.indices(shape)))
    for dim in range(2):
        vector = widest_vector(layout, dim, 8)
        along = np.moveaxis(offsets, dim, 1)
        whole = along[:, : along.shape[1] // vector * vector].reshape(along.shape[0], -1, vector)
        assert (whole == whole[..., :1] + np.arange(vector)).all()
        assert (whole[..., 0] % vector == 0).all()


@pytest.mark.parametrize(
    ("shape", "bytes_", "order"), [((64, 64), 4, (0, 1)), ((64, 128), 2, (1, 0))]
)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_whole_dimension_stays_in_warps(
    shape: tuple[int, int], bytes_: int, order: tuple[int, int], dim: int
) -> None:
    layout = coalesced(shape, bytes_, 4, order=order, whole=(dim,))
    warps = layout.places[1]
    assert all(f.dim != dim for f in warps)
    fastest = order[-1]
    neighbours = layout.contiguous(fastest)
    lanes = next(f for f in reversed(layout.places[2]) if f.dim == fastest)
    assert neighbours * lanes.size * bytes_ >= 32, "lanes access whole sectors"


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("grid", [(1, 1), (2, 1), (1, 4), (2, 2)])
def test_grids_of_warps_are_recognized(grid: tuple[int, int], copies: int) -> None:
    layout = accumulator((64, 64), grid, copies)
    assert accumulator_grid(layout) == (*grid, copies)
    for operand in (operand_a(layout, (64, 32), 16), operand_b(layout, (32, 64), 16)):
        assert (operand.warps, operand.ctas) == (layout.warps, 1)
        # A thread needs each element of an operand's row or column for its accumulators.
    assert accumulator_grid(coalesced((64, 64), 4, 4)) is None
    assert (layout == mma_accumulator((64, 64), grid)) == (copies == 1)
