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

from lego_mlir.algebra import Col, GenP, Layout, OrderBy, RegP, Row, tma_swizzle
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.swizzle import CHUNK, MODES

SWIZZLES = tuple(mode for mode in MODES if mode)
"""Bytes of a swizzled row, the widest first: the wider, the more 16-byte chunks are exchanged."""

_ELEMENT_BYTES = (2, 1, 4)


@lru_cache(maxsize=1 << 10)
def swizzled_tile(
    shape: tuple[int, int], contiguous: int, element_bytes: int, parts: int = 1
) -> Layout:
    """Return the layout with the widest swizzle that divides the contiguous dimension.

    Where none does it consists of columns of 16-byte chunks, without a swizzle.

    Args:
        shape: of the tile.
        contiguous: the dimension along which elements are contiguous.
        element_bytes: bytes of an element.
        parts: into how many equal parts the contiguous dimension is divided, of which instructions
            read one.

    Raises:
        LegoError: chunks of 16 bytes do not divide it.
    """
    part_bytes, rest = divmod(shape[contiguous] * element_bytes, parts)
    fitting = [mode for mode in (*SWIZZLES, CHUNK) if not rest and part_bytes % mode == 0]
    if not fitting:
        divided = f", in {parts} parts," if parts > 1 else ""
        raise LegoError(
            f"rows of {shape[contiguous]} elements of {element_bytes} bytes in shared memory"
            f"{divided} are not a multiple of {CHUNK} bytes"
        )
    return _tile(shape, contiguous, element_bytes, fitting[0])


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
    forms = product(range(2), _ELEMENT_BYTES, (*SWIZZLES, CHUNK)) if tile.rank == 2 else ()
    for contiguous, size, mode in forms:
        row_bytes = sizes[contiguous] * size
        if row_bytes % mode == 0 and tile == _tile((sizes[0], sizes[1]), contiguous, size, mode):
            return _tile((shape[0], shape[1]), 1 - contiguous, size, mode)
    view = OrderBy(RegP(shape, [order.index(d) for d in range(tile.rank)]))
    return tile.compose(view).GroupBy(shape)


@lru_cache(maxsize=1 << 10)
def reshaped_tile(tile: Layout, shape: tuple[int, ...]) -> Layout:
    """Return the layout of the same memory whose elements, in their order, have other indices.

    Args:
        tile: the layout of a tile, of known sizes.
        shape: of the result.
    """
    if shape == tuple(int(n) for n in tile.dims):
        return tile
    return tile.compose(OrderBy(Row(*shape)))


# ---------------------------------------------------------------------------- the layouts
@lru_cache(maxsize=1 << 10)
def _tile(shape: tuple[int, int], contiguous: int, element_bytes: int, row_bytes: int) -> Layout:
    """Return the layout of a tile in rows of so many bytes, swizzled if they are more than a chunk.

    Args:
        shape: of the tile.
        contiguous: the dimension along which elements are contiguous.
        element_bytes: bytes of an element.
        row_bytes: one of `SWIZZLES`, or a chunk; divides the contiguous dimension.
    """
    width = row_bytes // element_bytes
    slices, lines = shape[contiguous] // width, shape[1 - contiguous]
    if contiguous:
        view = RegP([lines, slices, width], [1, 0, 2])
    else:
        view = RegP([slices, width, lines], [0, 2, 1])
    if row_bytes == CHUNK:
        return OrderBy(view).GroupBy(list(shape))
    order = OrderBy(GenP([lines * slices, width], tma_swizzle(row_bytes, element_bytes)))
    if slices > 1:
        return order.OrderBy(view).GroupBy(list(shape))
    return order if contiguous else order.OrderBy(Col(*shape))


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
    return _tile((rows, columns), 1, element_bytes, width * element_bytes)


def tma_swizzled_transpose(rows: int, columns: int, element_bytes: int) -> Layout:
    """Return the layout of a tile with contiguous columns; see `tma_swizzled_tile`."""
    width = swizzled_width(rows, element_bytes)
    return _tile((rows, columns), 0, element_bytes, width * element_bytes)
