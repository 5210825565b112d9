"""Tiles in shared memory, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.analysis.shared_tiles import swizzled_tile, transposed_tile
from lego_mlir.diagnostics import LegoError

SIZES = st.integers(1, 24).map(lambda n: 8 * n)


def offsets(layout: Layout, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(layout.offsets()).reshape(shape)


@given(SIZES, SIZES, st.sampled_from([0, 1]), st.sampled_from([2, 4]))
def test_the_transpose_is_the_tile_of_the_other_dimension(
    rows: int, columns: int, contiguous: int, size: int
) -> None:
    """It has the same elements in the same places, and its own transpose is the tile again."""
    tile = swizzled_tile((rows, columns), contiguous, size)
    turned = transposed_tile(tile, (1, 0))
    assert turned == swizzled_tile((columns, rows), 1 - contiguous, size)
    assert transposed_tile(turned, (1, 0)) == tile
    found = offsets(turned, (columns, rows))
    assert np.array_equal(found, offsets(tile, (rows, columns)).T)


@given(SIZES, SIZES, st.sampled_from([0, 1]), st.sampled_from([2, 4]))
def test_elements_are_contiguous_in_16_bytes(
    rows: int, columns: int, contiguous: int, size: int
) -> None:
    found = offsets(swizzled_tile((rows, columns), contiguous, size), (rows, columns))
    assert sorted(found.reshape(-1)) == list(range(rows * columns))
    chunk = 16 // size
    lines = found if contiguous else found.T
    chunks = lines.reshape(lines.shape[0], -1, chunk)
    assert (chunks == chunks[..., :1] + np.arange(chunk)).all()
    assert (chunks[..., 0] % chunk == 0).all()


def test_other_layouts_are_turned_by_composition() -> None:
    tile = OrderBy(Row(4, 6))
    turned = transposed_tile(tile, (1, 0))
    assert turned.dims == (6, 4)
    assert np.array_equal(offsets(turned, (6, 4)), offsets(tile, (4, 6)).T)
    cube = OrderBy(RegP([2, 3, 4], [1, 0, 2]))
    turned = transposed_tile(cube, (2, 0, 1))
    expected = offsets(cube, (2, 3, 4)).transpose(2, 0, 1)
    assert np.array_equal(offsets(turned, (4, 2, 3)), expected)


def test_parts_have_rows_of_their_own() -> None:
    assert swizzled_tile((32, 96), 1, 2, 1) == swizzled_tile((32, 96), 1, 2)
    halves = swizzled_tile((32, 96), 1, 2, 2)
    assert "tma_swizzle(32, 2)" in halves.text, "48 columns are 96 bytes"
    assert transposed_tile(transposed_tile(halves, (1, 0)), (1, 0)) == halves
    with pytest.raises(LegoError, match="in 5 parts, are not a multiple"):
        swizzled_tile((32, 96), 1, 2, 5)


def test_sizes_that_chunks_do_not_divide_are_refused() -> None:
    with pytest.raises(LegoError, match="not a multiple of 16 bytes"):
        swizzled_tile((64, 12), 1, 2)
