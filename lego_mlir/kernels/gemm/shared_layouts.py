"""Layouts of GEMM tiles in shared memory, without bank conflicts.

Tiles for `mma.sync`: threads write rows of the contiguous dimension, 16 bytes each, and `ldmatrix`
reads 16 bytes from each of eight neighbouring rows at once. In a row-major tile those eight would
be in the same banks; here the 16-byte units of a row are XORed with the row's number.

Tiles for TMA and `wgmma`: TMA copies rows of at most 128 bytes and swizzles them; `wgmma` reads
them as they are. A tile that is wider along its contiguous dimension is a sequence of such column
slices, one behind the other.

Source: PTX ISA 5.5.6 (swizzling modes), 9.7.15.5.1 (shared memory layouts of wgmma).
"""

from __future__ import annotations

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, RegP, Row, swizzle, tma_swizzle
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import BANK_LINE_BYTES, MMA_COLUMNS, WGMMA_ROWS
from lego_mlir.hardware.swizzle import MODES

UNIT_BYTES = 16
"""Bytes of a row that `cp.async` writes and `ldmatrix` reads."""

_MODES = tuple(mode for mode in MODES if mode)
"""Bytes of a swizzled row, the widest first: the wider, the more 16-byte chunks are exchanged."""


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


# ---------------------------------------------------------------------- TMA and wgmma
def swizzled_width(extent: int, element_bytes: int) -> int:
    """Return the elements of a swizzled row: the widest that divides the contiguous dimension.

    Args:
        extent: elements of the tile along its contiguous dimension.
        element_bytes: bytes of an element.

    Raises:
        LegoError: no swizzling mode divides it.
    """
    for mode in _MODES:
        if extent * element_bytes % mode == 0:
            return mode // element_bytes
    raise LegoError(
        f"rows of {extent} elements of {element_bytes} bytes in shared memory are not a multiple "
        f"of {_MODES[-1]} bytes, the narrowest that TMA swizzles"
    )


def tma_swizzled_tile(rows: int, columns: int, element_bytes: int) -> Layout:
    """Return the layout of a tile with contiguous rows, as TMA writes it and `wgmma` reads it.

    Args:
        rows: rows of the tile.
        columns: columns of the tile.
        element_bytes: bytes of an element.

    Raises:
        LegoError: no swizzling mode divides a row.
    """
    width = swizzled_width(columns, element_bytes)
    slices = columns // width
    order = GenP([rows * slices, width], tma_swizzle(width * element_bytes, element_bytes))
    if slices == 1:
        return OrderBy(order)
    by_slice = RegP([rows, slices, width], [1, 0, 2])
    return OrderBy(order).OrderBy(by_slice).GroupBy([rows, columns])


def tma_swizzled_transpose(rows: int, columns: int, element_bytes: int) -> Layout:
    """Return the layout of a tile with contiguous columns; see `tma_swizzled_tile`."""
    width = swizzled_width(rows, element_bytes)
    order = GenP(
        [rows // width * columns, width], tma_swizzle(width * element_bytes, element_bytes)
    )
    if rows == width:
        return OrderBy(order).OrderBy(Col(rows, columns))
    by_slice = RegP([rows // width, width, columns], [0, 2, 1])
    return OrderBy(order).OrderBy(by_slice).GroupBy([rows, columns])


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
    if by_row and width * element_bytes % _MODES[-1]:
        return OrderBy(Row(WGMMA_ROWS, width))
    layout = tma_swizzled_tile if by_row else tma_swizzled_transpose
    return layout(WGMMA_ROWS, width, element_bytes)


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
        narrow = (n for n in widths if n * UNIT_BYTES <= _MODES[0] and n > 1)
        return next(narrow, units) * UNIT_BYTES // element_bytes
    if WGMMA_ROWS * element_bytes > _MODES[0]:
        raise LegoError(
            f"a column of {WGMMA_ROWS} elements of {element_bytes} bytes is wider than the "
            f"{_MODES[0]} bytes that TMA swizzles"
        )
    multiples = range(min(columns, WGMMA_ROWS) // MMA_COLUMNS * MMA_COLUMNS, 0, -MMA_COLUMNS)
    return next(n for n in multiples if columns % n == 0)
