"""Tiles in shared memory as TMA writes and WGMMA reads them."""

from __future__ import annotations

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, RegP, tma_swizzle


def by_rows(rows: int, columns: int, element: int = 2, mode: int = 128) -> Layout:
    """A tile with contiguous rows: panels of `mode` bytes, one behind the other.

    Args:
        rows: of the tile.
        columns: of the tile, in whole panels.
        element: bytes of an element.
        mode: of the swizzle.
    """
    layout = _panels(rows, columns, element, mode)
    return layout if len(layout.orders) == 1 else layout.GroupBy([rows, columns])


def by_columns(rows: int, columns: int, element: int = 2, mode: int = 128) -> Layout:
    """A tile with contiguous columns, in panels of rows."""
    return _panels(columns, rows, element, mode).OrderBy(Col(rows, columns))


def _panels(rows: int, columns: int, element: int, mode: int) -> Layout:
    width = mode // element
    panels = columns // width
    first = OrderBy(GenP([rows * panels, width], tma_swizzle(mode, element)))
    return first if panels == 1 else first.OrderBy(RegP([rows, panels, width], [1, 0, 2]))
