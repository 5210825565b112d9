"""Tiles for mma.sync in shared memory: their accesses have no bank conflicts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from lego_mlir.algebra import Layout
from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import BANK_LINE_BYTES
from lego_mlir.kernels.gemm.shared_layouts import (
    EPILOGUE_TILES,
    UNIT_BYTES,
    epilogue_tile,
    thread_stored_tile,
    xor_swizzled_tile,
    xor_swizzled_transpose,
)

LANES = np.arange(32)
SIZES = (16, 32, 64, 128, 256)


def tiles(size: int) -> list[tuple[int, int]]:
    """Return the shapes of tiles whose rows have 16 to 512 bytes."""
    most = 4 * BANK_LINE_BYTES
    return [(m, n) for m, n in product(SIZES, SIZES) if UNIT_BYTES <= n * size <= most]


def offsets(layout: Layout, rows: Any, columns: Any, size: int) -> Any:
    """Return the byte offsets of elements."""
    return layout.apply(rows, columns) * size


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ldmatrix_has_no_bank_conflicts(size: int) -> None:
    """Lane r of a phase has the address of row r: eight rows, 16 bytes of each."""
    unit = UNIT_BYTES // size
    for rows, columns in tiles(size):
        layout = xor_swizzled_tile(rows, columns, size)
        for first, column in product(range(0, rows - 7, 8), range(0, columns, unit)):
            lanes = offsets(layout, first + LANES % 8, np.full(32, column), size)
            active = LANES < 8
            assert not wavefronts(lanes, 16, active).excess, (rows, columns, first, column)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_stores_of_units_have_no_bank_conflicts(size: int) -> None:
    """Neighbouring threads store neighbouring units of a row, and of the rows below it."""
    unit = UNIT_BYTES // size
    for rows, columns in tiles(size):
        layout = xor_swizzled_tile(rows, columns, size)
        a_row = columns // unit
        units = LANES + np.arange(0, rows * a_row - 31, 32)[:, None]
        lanes = offsets(layout, units // a_row, units % a_row * unit, size)
        assert not wavefronts(lanes, 16).excess.any(), (rows, columns)


@pytest.mark.parametrize(("size", "unit"), [(2, 16), (4, 32)])
def test_stores_of_accumulators_have_no_bank_conflicts(size: int, unit: int) -> None:
    """Lane l holds two neighbours of row l/4 of the accumulator, from column 2 (l mod 4) on."""
    for rows, columns in tiles(size):
        if columns * size < unit:
            continue
        layout = xor_swizzled_tile(rows, columns, size, unit_bytes=unit)
        for first, column in product(range(0, rows - 7, 8), range(0, columns, 8)):
            lanes = offsets(layout, first + LANES // 4, column + LANES % 4 * 2, size)
            assert not wavefronts(lanes, 2 * size).excess, (rows, columns, first, column)


def test_units_stay_contiguous() -> None:
    layout = xor_swizzled_tile(64, 64, 2)
    starts = layout.apply(*np.ix_(np.arange(64), np.arange(0, 64, 8)))
    within = layout.apply(np.arange(64)[:, None, None], np.arange(64).reshape(8, 8)[None])
    assert (within == starts[:, :, None] + np.arange(8)).all()


@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (16, 256)])
def test_a_transposed_tile_has_the_same_memory(shape: tuple[int, int]) -> None:
    m, n = shape
    i, j = np.ix_(np.arange(m), np.arange(n))
    transpose, plain = xor_swizzled_transpose(m, n, 2), xor_swizzled_tile(n, m, 2)
    assert tuple(transpose.dims) == shape
    assert (transpose.apply(i, j) == plain.apply(j, i)).all()
    assert transpose.verify()


def test_tiles_that_need_no_swizzle_are_row_major() -> None:
    assert str(xor_swizzled_tile(64, 8, 2)) == "OrderBy(Row(64, 8))"
    assert str(xor_swizzled_tile(64, 64, 2)) == "OrderBy(GenP([64, 64], swizzle(8, 1, 8)))"
    assert str(xor_swizzled_tile(64, 32, 2)) == "OrderBy(GenP([64, 32], swizzle(8, 2, 4)))"


def test_sizes_that_are_not_powers_of_two_are_refused() -> None:
    with pytest.raises(LegoError, match="powers of two, not 96×64"):
        xor_swizzled_tile(96, 64, 2)


@pytest.mark.parametrize(
    ("columns", "size", "width"),
    [(256, 2, 128), (192, 2, 64), (64, 2, 64), (24, 2, 24), (128, 4, 64), (256, 1, 256)],
)
def test_rows_that_threads_store_are_as_wide_as_two_tiles(
    columns: int, size: int, width: int
) -> None:
    """They take the memory of the two tiles that TMA stores concurrently, at most."""
    tile = thread_stored_tile(columns, size)
    assert tile.dims == (64, width)
    assert tile.size <= EPILOGUE_TILES * epilogue_tile(columns, size).size
    offsets = sorted(tile.apply(i, j) for i in range(64) for j in range(width))
    assert offsets == list(range(64 * width))
