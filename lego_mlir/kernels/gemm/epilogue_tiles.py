"""The tiles in which an epilogue stores C from shared memory, of 64 rows each."""

from __future__ import annotations

from lego_mlir.analysis.shared_tiles import SWIZZLES, swizzled_width
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MMA_COLUMNS, WGMMA_ROWS

UNIT_BYTES = 16
"""Bytes of a row that a thread writes or `stmatrix` stores at once."""

EPILOGUE_TILES = 2
"""Epilogue tiles of a warpgroup in shared memory, which TMA stores concurrently."""


def epilogue_columns(columns: int, element_bytes: int, *, by_row: bool = True) -> int:
    """Return the columns of an epilogue tile, which divide those of the CTA's tile.

    They are a row of the widest swizzle. No swizzle fits an odd number of 16-byte units; but then
    rows of an odd number of units, one behind the other, have no bank conflicts either.

    Args:
        columns: columns of the CTA's tile of C.
        element_bytes: bytes of an element of C.
        by_row: whether rows are contiguous, else columns, of elements of at most 2 bytes.

    Raises:
        LegoError: no swizzling mode divides the tile.
    """
    if columns % MMA_COLUMNS:
        raise LegoError(f"{columns} columns of C are no multiple of {MMA_COLUMNS}")
    if by_row:
        units, rest = divmod(columns * element_bytes, UNIT_BYTES)
        if rest or units % 2 == 0:
            return swizzled_width(columns, element_bytes)
        widths = [n for n in range(units, 0, -1) if units % n == 0]
        narrow = (n for n in widths if n * UNIT_BYTES <= SWIZZLES[0] and n > 1)
        return next(narrow, units) * UNIT_BYTES // element_bytes
    if WGMMA_ROWS * element_bytes > SWIZZLES[0]:
        raise LegoError(
            f"a column of {WGMMA_ROWS} elements of {element_bytes} bytes is wider than the "
            f"{SWIZZLES[0]} bytes that TMA swizzles"
        )
    multiples = range(min(columns, WGMMA_ROWS) // MMA_COLUMNS * MMA_COLUMNS, 0, -MMA_COLUMNS)
    return next(n for n in multiples if columns % n == 0)
