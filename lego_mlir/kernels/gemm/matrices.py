"""Layouts of matrices in memory, one or a batch of them: given, transposed, and tiled."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.algebra.sizes import ceildiv, sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.index import Int
from lego_mlir.kernels.gemm.problem import Problem

ALIGNMENT = 16
"""Bytes that the address of every matrix is a multiple of."""


def layout_of(what: str, layout: Layout | None, shape: Sequence[Int]) -> Layout:
    """Return the layout of a tensor of this shape: `layout`, or row-major if it is `None`.

    Args:
        what: the name of the tensor, for the message.
        layout: the layout that the caller gives.
        shape: the sizes of the tensor.

    Raises:
        LegoError: it is not a layout, or has another shape.
    """
    if layout is None:
        return OrderBy(Row(*shape))
    if not isinstance(layout, Layout):
        raise LegoError(
            f"{what} = {layout!r} is not a layout",
            hint=f"a column-major matrix is OrderBy(Col({', '.join(map(str, shape[-2:]))}))",
        )
    if tuple(layout.dims) == tuple(shape):
        return layout
    if layout.view is None and layout.size == prod(shape):
        return layout.TileBy(list(shape))
    raise LegoError(
        f"the layout {what} = '{layout}' has the sizes {sizes_text(layout.dims)}, "
        f"the tensor {sizes_text(tuple(shape))}"
    )


def order_of(layout: Layout) -> str:
    """Return the contiguous dimension of a matrix, or of those of a batch: `row` or `col`."""
    return "col" if contiguous_dimension(layout) == layout.rank - 2 else "row"


def contiguous_dimension(layout: Layout) -> int:
    """Return the dimension whose neighbours are neighbours in memory; the last if there is none."""
    origin = [0] * layout.rank
    start = layout.apply(*origin)
    for k in reversed(range(layout.rank)):
        if layout.dims[k] != 1:
            origin[k] = 1
            if layout.apply(*origin) - start == 1:
                return k
            origin[k] = 0
    return layout.rank - 1


def is_plain(layout: Layout) -> bool:
    """Return whether a matrix, or each of a batch, is row-major or column-major without gaps."""
    rows = layout if order_of(layout) == "row" else transposed(layout)
    return bool(rows.equals(OrderBy(Row(*rows.dims))))


def transposed(layout: Layout) -> Layout:
    """Return the layout of the transpose: the same memory, with the last two dimensions swapped."""
    *lead, m, n = layout.dims
    k = len(lead)
    exchanged = OrderBy(RegP([*lead, n, m], [*range(k), k + 1, k]))
    found = layout.compose(exchanged).simplified()
    return found if found.orders else OrderBy(Row(*found.dims))


def tiled(layout: Layout, *tiles: Sequence[int]) -> Layout:
    """Return the layout of a tensor of tiles: first the tile's index, then the element's in it.

    Args:
        layout: the layout of the tensor.
        tiles: the size of a tile along each dimension; tiles at the edges are partial. With more
            than one, the sizes of a tile in tiles of the next level, from the outermost inwards.

    Raises:
        LegoError: the layout cannot be tiled.
    """
    dims = layout.dims
    sizes = [prod(level) for level in zip(*tiles, strict=True)]
    counts = [ceildiv(n, size) for n, size in zip(dims, sizes, strict=True)]
    levels = [list(level) for level in tiles]
    if layout.view is None:
        return layout.TileBy(counts, *levels)
    try:
        return layout.compose(OrderBy(Row(*dims)).TileBy(counts, *levels))
    except LegoError as e:
        raise LegoError(
            f"the layout '{layout}' cannot be divided into tiles of {sizes_text(tuple(sizes))}: "
            f"{e.message}",
            hint="give it as blocks, OrderBy(...), or with sizes that the tiles divide",
        ) from None


def tiled_matrices(layout: Layout, *tiles: Sequence[int]) -> Layout:
    """Return `tiled` of a matrix, or of each of a batch.

    Args:
        layout: the layout of the matrix, or of the batch.
        tiles: as in `tiled`, two sizes each.
    """
    ones = (1,) * (layout.rank - 2)
    return tiled(layout, *((*ones, *level) for level in tiles))


def tile_index(batch: Sequence[Any], *levels: Sequence[Any]) -> tuple[Any, ...]:
    """Return the index of an element of a tensor of tiles.

    Args:
        batch: the matrix's index in the batch; nothing without a batch.
        levels: the index of each level of tiles, the outermost first.
    """
    first, *others = levels
    inner = [i for level in others for i in (*(0 for _ in batch), *level)]
    return (*batch, *first, *inner)


def copy_widths(problem: Problem, alignment: int = ALIGNMENT) -> tuple[int, int]:
    """Return the bytes of the widest copies that every row of A and of B can be made of.

    Args:
        problem: the GEMM.
        alignment: bytes that the addresses of the matrices are a multiple of.
    """
    size = ELEMENT_BYTES[problem.dtype]
    if not problem.is_along_k:  # bytes are transposed one by one
        return 1, 1
    pitches = (
        problem.k if problem.a == "row" else problem.m,
        problem.k if problem.b == "col" else problem.n,
    )
    a, b = (gcd(ALIGNMENT, alignment, pitch * size) for pitch in pitches)
    return a, b
