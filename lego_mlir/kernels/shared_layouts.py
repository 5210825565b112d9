"""Where a tile's elements lie in shared memory, so that no access of it meets a bank twice.

A line of shared memory is 128 bytes, what all its banks give at once. Tiles are written by rows of
their contiguous dimension, 16 bytes a thread, and read by `ldmatrix`, which takes 16 bytes from
each of eight neighbouring rows at once. Row-major, those eight would lie one below the other, in
the same banks; here a row's 16-byte units are XORed with its number, so that they do not.
"""

from __future__ import annotations

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, Row, swizzle
from lego_mlir.diagnostics import LegoError

LINE = 128
"""Bytes that the banks of shared memory give at once."""

UNIT = 16
"""Bytes that `cp.async` writes and that `ldmatrix` reads of a row."""


def staged_tile(rows: int, columns: int, size: int, *, unit: int = UNIT) -> Layout:
    """A tile in shared memory, its rows contiguous, its units free of bank conflicts.

    The eight rows that are accessed together are in eight different places of a line: those that
    lie in one line by themselves, the others by XOR with the number of their line.

    Args:
        rows: a power of two.
        columns: a power of two.
        size: of an element, in bytes.
        unit: bytes of a row that are accessed together.

    Raises:
        LegoError: a size is no power of two.
    """
    if any(n < 1 or n & (n - 1) for n in (rows, columns)):
        raise LegoError(
            f"a tile in shared memory has sizes that are powers of two, not {rows}×{columns}"
        )
    row = columns * size
    phases, together = min(LINE, row) // unit, max(1, LINE // row)
    if phases < 2 or rows <= together:
        return OrderBy(Row(rows, columns))
    permutation = swizzle(unit // size, together, min(phases, rows // together))
    return OrderBy(GenP([rows, columns], permutation))


def staged_transpose(rows: int, columns: int, size: int, *, unit: int = UNIT) -> Layout:
    """The same with contiguous columns."""
    return staged_tile(columns, rows, size, unit=unit).compose(OrderBy(Col(rows, columns)))
