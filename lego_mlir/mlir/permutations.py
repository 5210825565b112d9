"""A user's own permutation: a pair of functions in the module, `GenP([n, n], @f, @f_inv)`.

Whether they permute the tile is tried, not proven: on every element, where the sizes are known.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lego_mlir.algebra import GenP, Layout
from lego_mlir.mlir.context import Source

_CHECKED_ELEMENTS = 1 << 22


def check_permutations(layout: Layout, source: Source, location: Any) -> None:
    """Try a layout's own functions on every element of their tile, where its size is known.

    Raises:
        LegoError: they do not permute the tile, or do not undo one another.
    """
    for block in (b for order in layout.orders for b in order.blocks):
        if isinstance(block, GenP) and block.permutation.functions is not None:
            dims = [n for n in block.dims if isinstance(n, int)]
            if len(dims) == len(block.dims) and prod(dims) <= _CHECKED_ELEMENTS:
                _check(block, dims, source, location)


def _check(block: GenP, dims: list[int], source: Source, location: Any) -> None:
    import numpy as np

    size = prod(dims)
    index = np.unravel_index(np.arange(size), dims)
    flat = np.broadcast_to(np.asarray(block.apply(index)), (size,))
    outside = (flat < 0) | (flat >= size)
    reached = np.bincount(flat[~outside], minlength=size)
    if outside.any() or (reached != 1).any():
        wrong = int(np.argmax(outside | (reached[np.where(outside, 0, flat)] > 1)))
        at, position = [int(i[wrong]) for i in index], int(flat[wrong])
        what = f"outside of the tile's {size}" if outside[wrong] else "as another element does"
        raise source.error(
            f"{block.text} is no permutation: element {at} goes to position {position}, {what}",
            location,
            hint="each element of the tile goes to a position of its own, 0 to size - 1",
        )
    back = np.broadcast_arrays(*block.inv(flat), flat)[:-1]
    differs = np.any([b != i for b, i in zip(back, index, strict=True)], axis=0)
    if differs.any():
        wrong = int(np.argmax(differs))
        raise source.error(
            f"{block.text}: the functions do not undo one another: element "
            f"{[int(i[wrong]) for i in index]} goes to position {int(flat[wrong])}, which comes "
            f"back as {[int(b[wrong]) for b in back]}",
            location,
        )
