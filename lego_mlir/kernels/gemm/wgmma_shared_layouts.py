"""Where tiles lie in shared memory for TMA and `wgmma`: rows as wide as their swizzle, in panels.

TMA copies rows of at most 128 bytes, and swizzles them; `wgmma` reads what it has written. A tile
that is wider along its contiguous dimension lies in panels of such rows, one behind the other.

Source: PTX ISA 5.5.6 (swizzling modes), 9.7.15.5.1 (shared memory layouts of wgmma).
"""

from __future__ import annotations

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, RegP, tma_swizzle
from lego_mlir.diagnostics import LegoError

MODES = (128, 64, 32)
"""Bytes of a row, the widest first: the more, the more chunks of 16 bytes change places."""

ROWS = 64
"""Rows of the result of one `wgmma`, and of what is stored of it at a time."""


def panel_width(columns: int, size: int) -> int:
    """The elements of a row of a panel: the widest rows that make up the columns.

    Args:
        columns: of the tile, along its contiguous dimension.
        size: bytes of an element.

    Raises:
        LegoError: there are none.
    """
    for mode in MODES:
        if columns * size % mode == 0:
            return mode // size
    raise LegoError(
        f"rows of {columns} elements of {size} bytes in shared memory are no multiple of "
        f"{MODES[-1]} bytes, the least that TMA swizzles"
    )


def panels(rows: int, columns: int, size: int) -> Layout:
    """A tile in shared memory whose rows are contiguous.

    Args:
        rows: of the tile.
        columns: of the tile.
        size: bytes of an element.

    Raises:
        LegoError: rows are not made up of any that TMA swizzles.
    """
    width = panel_width(columns, size)
    count = columns // width
    order = GenP([rows * count, width], tma_swizzle(width * size, size))
    if count == 1:
        return OrderBy(order)
    by_panel = RegP([rows, count, width], [1, 0, 2])
    return OrderBy(order).OrderBy(by_panel).GroupBy([rows, columns])


def panels_of_columns(rows: int, columns: int, size: int) -> Layout:
    """The same with contiguous columns."""
    width = panel_width(rows, size)
    order = GenP([rows // width * columns, width], tma_swizzle(width * size, size))
    if rows == width:
        return OrderBy(order).OrderBy(Col(rows, columns))
    by_panel = RegP([rows // width, width, columns], [0, 2, 1])
    return OrderBy(order).OrderBy(by_panel).GroupBy([rows, columns])


def chunk(columns: int, size: int, *, by_row: bool = True) -> Layout:
    """A part of a result in shared memory on its way out: 64 rows of it, one swizzle wide.

    Args:
        columns: of the result's tile.
        size: bytes of an element.
        by_row: whether rows are contiguous, else columns, of elements of at most 2 bytes.

    Raises:
        LegoError: there is no such part of the tile.
    """
    width = chunk_width(columns, size, by_row=by_row)
    return (panels if by_row else panels_of_columns)(ROWS, width, size)


def chunk_width(columns: int, size: int, *, by_row: bool = True) -> int:
    """The columns of such a part; arguments and errors are those of `chunk`."""
    if by_row:
        return panel_width(columns, size)
    if ROWS * size > MODES[0]:
        raise LegoError(
            f"a column of {ROWS} elements of {size} bytes is wider than the {MODES[0]} bytes that "
            "TMA swizzles"
        )
    return next(n for n in range(min(columns, ROWS), 0, -1) if columns % n == 0)
