"""Epilogue tiles in shared memory."""

from __future__ import annotations

import pytest

from lego_mlir.kernels.gemm.shared_layouts import (
    EPILOGUE_TILES,
    epilogue_tile,
    thread_stored_tile,
)


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
