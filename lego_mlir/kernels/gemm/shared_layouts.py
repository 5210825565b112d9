"""Layouts of GEMM tiles in shared memory, without bank conflicts.

Tiles for `mma.sync`: threads write rows of the contiguous dimension, 16 bytes each, and `ldmatrix`
reads 16 bytes from each of eight neighbouring rows at once. In a row-major tile those eight would
be in the same banks; here the 16-byte units of a row are XORed with the row's number.

Tiles for TMA and `wgmma` are in `analysis.shared_tiles`; here is the tile that an epilogue stores.
"""

from __future__ import annotations

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, Row, swizzle
from lego_mlir.analysis.shared_tiles import (
    SWIZZLES,
    swizzled_width,
    tma_swizzled_tile,
    tma_swizzled_transpose,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import BANK_LINE_BYTES, MMA_COLUMNS, WGMMA_ROWS

UNIT_BYTES = 16
"""Bytes of a row that `cp.async` writes and `ldmatrix` reads."""

EPILOGUE_TILES = 2
"""Epilogue tiles of a warpgroup in shared memory, which TMA stores concurrently."""


# ---------------------------------------------------------------------------- mma.sync
def xor_swizzled_tile(
    rows: int, columns: int, element_bytes: int, *, unit_bytes: int = UNIT_BYTES
) -> Layout:
    """Return the layout of a tile with contiguous rows, whose units have no bank conflicts.

    Eight rows are accessed together. Their units are in eight different positions of a 128-byte
    line: rows that share a line have different positions anyway, the others get them by XOR with
    the number of their line.

    Args:
        rows: rows of the tile, a power of two.
        columns: columns of the tile, a power of two.
        element_bytes: bytes of an element.
        unit_bytes: bytes of a row that are accessed together.

    Raises:
        LegoError: a size is not a power of two.
    """
    if any(n < 1 or n & (n - 1) for n in (rows, columns)):
        raise LegoError(
            f"a tile in shared memory has sizes that are powers of two, not {rows}×{columns}"
        )
    row_bytes = columns * element_bytes
    phases = min(BANK_LINE_BYTES, row_bytes) // unit_bytes
    rows_per_line = max(1, BANK_LINE_BYTES // row_bytes)
    if phases < 2 or rows <= rows_per_line:
        return OrderBy(Row(rows, columns))
    permutation = swizzle(
        unit_bytes // element_bytes, rows_per_line, min(phases, rows // rows_per_line)
    )
    return OrderBy(GenP([rows, columns], permutation))


def xor_swizzled_transpose(
    rows: int, columns: int, element_bytes: int, *, unit_bytes: int = UNIT_BYTES
) -> Layout:
    """Return the layout of a tile with contiguous columns; see `xor_swizzled_tile`."""
    tile = xor_swizzled_tile(columns, rows, element_bytes, unit_bytes=unit_bytes)
    return tile.compose(OrderBy(Col(rows, columns)))


# ---------------------------------------------------------------------- the epilogue
def epilogue_tile(columns: int, element_bytes: int, *, by_row: bool = True) -> Layout:
    """Return the layout of an epilogue tile: the 64 rows of C that TMA stores at a time.

    Args:
        columns: columns of the CTA's tile of C.
        element_bytes: bytes of an element of C.
        by_row: whether rows are contiguous, else columns, of elements of at most 2 bytes.

    Raises:
        LegoError: no swizzling mode divides the tile.
    """
    width = epilogue_columns(columns, element_bytes, by_row=by_row)
    if by_row:
        return _rows(width, element_bytes)
    return tma_swizzled_transpose(WGMMA_ROWS, width, element_bytes)


def thread_stored_tile(columns: int, element_bytes: int, *, by_row: bool = True) -> Layout:
    """Return the layout of an epilogue tile that threads store, whose rows TMA does not take.

    A row of it begins and ends anywhere in a sector of memory, and the L2 cache takes parts of
    sectors at half its speed or less. So it is as wide as two tiles for TMA, if those divide the
    CTA's: threads that store need no second one to write to meanwhile. Arguments and errors are
    those of `epilogue_tile`.
    """
    if not by_row:
        return epilogue_tile(columns, element_bytes, by_row=False)
    width = epilogue_columns(columns, element_bytes)
    wide = EPILOGUE_TILES * width
    return _rows(width if columns % wide else wide, element_bytes)


def _rows(width: int, element_bytes: int) -> Layout:
    """Return the layout of an epilogue tile of this width whose rows are contiguous."""
    if width * element_bytes % SWIZZLES[-1]:
        return OrderBy(Row(WGMMA_ROWS, width))
    return tma_swizzled_tile(WGMMA_ROWS, width, element_bytes)


def epilogue_columns(columns: int, element_bytes: int, *, by_row: bool = True) -> int:
    """Return the columns of an epilogue tile; arguments and errors are those of `epilogue_tile`.

    They are a row of the widest swizzle. No swizzle fits an odd number of 16-byte units; but then
    rows of an odd number of units, one behind the other, have no bank conflicts either.
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
