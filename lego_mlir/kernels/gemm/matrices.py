"""Matrices in memory, one or a batch of them: their layouts, transposed, and seen as tiles."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError


def layout_of(what: str, layout: Layout | None, shape: Sequence[int]) -> Layout:
    """The layout of a tensor of this shape: the one that is given, else row-major.

    Raises:
        LegoError: the one that is given has another shape.
    """
    if layout is None:
        return OrderBy(Row(*shape))
    if not isinstance(layout, Layout):
        raise LegoError(
            f"{what} = {layout!r} is no layout",
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


def contiguous_dimension(layout: Layout) -> int:
    """The dimension along which neighbours are neighbours in memory; the last if there is none."""
    origin = [0] * layout.rank
    start = layout.apply(*origin)
    for k in reversed(range(layout.rank)):
        if layout.dims[k] != 1:
            origin[k] = 1
            if layout.apply(*origin) - start == 1:
                return k
            origin[k] = 0
    return layout.rank - 1


def transposed(layout: Layout) -> Layout:
    """The layout of the transposes: the same memory, the last two dimensions exchanged."""
    *lead, m, n = layout.dims
    k = len(lead)
    exchanged = OrderBy(RegP([*lead, n, m], [*range(k), k + 1, k]))
    found = layout.compose(exchanged).simplified()
    return found if found.orders else OrderBy(Row(*found.dims))


def tiled(layout: Layout, tiles: Sequence[int]) -> Layout:
    """A tensor indexed tile by tile: first the tile, then the element in it.

    Args:
        layout: of the tensor.
        tiles: the sizes of a tile, one a dimension; at the edges tiles are partial.

    Raises:
        LegoError: the layout cannot be tiled.
    """
    dims = [n for n in layout.dims if isinstance(n, int)]
    counts = [-(-n // tile) for n, tile in zip(dims, tiles, strict=True)]
    if layout.view is None:
        return layout.TileBy(counts, list(tiles))
    try:
        return layout.compose(OrderBy(Row(*dims)).TileBy(counts, list(tiles)))
    except LegoError as e:
        raise LegoError(
            f"the layout '{layout}' cannot be divided into tiles of {sizes_text(tuple(tiles))}: "
            f"{e.message}",
            hint="give it as blocks, OrderBy(...), or with sizes that the tiles divide",
        ) from None
