"""Tiles in shared memory: where each element lies, as TMA writes it and `wgmma` reads it.

TMA copies rows of at most 128 bytes and swizzles them; `wgmma` reads them as they are. A tile that
is wider along its contiguous dimension is a sequence of such column slices, one behind the other:

    swizzled_tile((64, 128), 1, 2)      64 rows of 128 f16, contiguous along k: two slices of 64
    swizzled_tile((128, 64), 0, 2)      the same memory as a tile of columns

Source: PTX ISA 5.5.6 (swizzling modes), 9.7.15.5.1 (shared memory layouts of wgmma).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, RegP, tma_swizzle
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.swizzle import MODES

SWIZZLES = tuple(mode for mode in MODES if mode)
"""Bytes of a swizzled row, the widest first: the wider, the more 16-byte chunks are exchanged."""

_ELEMENT_BYTES = (2, 1, 4)


@lru_cache(maxsize=1 << 10)
def swizzled_tile(shape: tuple[int, int], contiguous: int, element_bytes: int) -> Layout:
    """Return the layout with the widest swizzle that divides the contiguous dimension.

    Args:
        shape: of the tile.
        contiguous: the dimension along which elements are contiguous.
        element_bytes: bytes of an element.

    Raises:
        LegoError: no swizzle divides it.
    """
    make = tma_swizzled_tile if contiguous else tma_swizzled_transpose
    return make(*shape, element_bytes)


@lru_cache(maxsize=1 << 10)
def transposed_tile(tile: Layout, order: tuple[int, ...]) -> Layout:
    """Return the layout of the same memory with the tile's dimensions in another order.

    The transpose of a `swizzled_tile` is one, too, in its own text.

    Args:
        tile: the layout of a tile, of known sizes.
        order: dimension k of the result is dimension `order[k]`.
    """
    if order == tuple(range(tile.rank)):
        return tile
    sizes = [int(n) for n in tile.dims]
    shape = [sizes[d] for d in order]
    for contiguous, size in product(range(2), _ELEMENT_BYTES) if tile.rank == 2 else ():
        if _is_swizzled(tile, contiguous, size):
            return swizzled_tile((shape[0], shape[1]), 1 - contiguous, size)
    view = OrderBy(RegP(shape, [order.index(d) for d in range(tile.rank)]))
    return tile.compose(view).GroupBy(shape)


def _is_swizzled(tile: Layout, contiguous: int, element_bytes: int) -> bool:
    """Return whether a layout is that of `swizzled_tile`, in its own text."""
    rows, columns = (int(n) for n in tile.dims)
    try:
        return swizzled_tile((rows, columns), contiguous, element_bytes) == tile
    except LegoError:  # no swizzle divides it
        return False


# ---------------------------------------------------------------------------- the layouts
def swizzled_width(extent: int, element_bytes: int) -> int:
    """Return the elements of a swizzled row: the widest that divides the contiguous dimension.

    Args:
        extent: elements of the tile along its contiguous dimension.
        element_bytes: bytes of an element.

    Raises:
        LegoError: no swizzling mode divides it.
    """
    for mode in SWIZZLES:
        if extent * element_bytes % mode == 0:
            return mode // element_bytes
    raise LegoError(
        f"rows of {extent} elements of {element_bytes} bytes in shared memory are not a multiple "
        f"of {SWIZZLES[-1]} bytes, the narrowest that TMA swizzles"
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
