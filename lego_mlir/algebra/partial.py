"""Partial tiles: tensors that their tiles do not divide.

    OrderBy(Row(100, 70)).TileBy([ceildiv(100, 64), ceildiv(70, 64)], [64, 64])

The tiles pad every dimension up to a whole number of tiles, here to 128x128. The index ranges over
the padded space; memory holds the tensor alone, and the mask says which indices stand for an
element. An index is first taken to its *coordinates*, one a dimension of the tensor: element j of
tile i, with tiles of T, has the coordinate i*T + j. Mask and offset follow from the coordinates.

Only the outermost level may pad a dimension, and by no more than its last tile needs: the number
of tiles is the least that covers the dimension. So sizes that do not match stay a mistake.

A skewed dimension is padded at both ends: its tiles begin up to `span - 1` before the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lego_mlir.algebra.blocks import Sizes, flatten, unflatten
from lego_mlir.algebra.parts import Order, View
from lego_mlir.algebra.permutations import Index
from lego_mlir.algebra.sizes import ceildiv, product, sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, bounds, construct, polynomial
from lego_mlir.index.functions import is_array, where
from lego_mlir.index.operands import operand, replaced
from lego_mlir.index.proofs import prover


def shape_of_order(order: Order) -> Sizes:
    """Return the tensor that a reordering is of: its blocks joined, dimension by dimension."""
    return tuple(map(product, zip(*(b.dims for b in order.blocks), strict=True)))


def shape_of_view(view: View) -> Sizes:
    """Return the space that the tiles of a view span, any padding included."""
    return tuple(map(product, zip(*view.tiles, strict=True)))


def is_padded(tensor: Sizes, view: View) -> bool:
    """Return whether the tiles of `view` cover a tensor of this shape without dividing it."""
    if view.kind != "TileBy" or len(tensor) != len(view.tiles[0]):
        return False
    shape, spanned = _to_cover(tensor, view), shape_of_view(view)
    whole = [_is_same(n, p) for n, p in zip(shape, spanned, strict=True)]
    if all(whole):
        return view.skew is not None
    least = [_is_same(t, n) for t, n in zip(view.tiles[0], covering(tensor, view), strict=True)]
    return all(w or c for w, c in zip(whole, least, strict=True))


def covering(tensor: Sizes, view: View) -> Sizes:
    """Return the outermost level with the fewest tiles that cover a tensor of this shape."""
    tiles = (product(levels[1:]) for levels in zip(*view.tiles, strict=True))
    return tuple(ceildiv(n, t) for n, t in zip(_to_cover(tensor, view), tiles, strict=True))


def _to_cover(tensor: Sizes, view: View) -> Sizes:
    """Return a tensor's shape, padded for the shift of a skewed dimension."""
    skew = view.skew
    if skew is None:
        return tensor
    padded = construct.add(tensor[skew.dim], skew.span - 1)
    return (*tensor[: skew.dim], padded, *tensor[skew.dim + 1 :])


def hint(tensor: Sizes, view: View) -> str | None:
    """Return a hint how tiles would cover a tensor, for an error about its sizes."""
    if view.kind != "TileBy" or len(tensor) != len(view.tiles[0]):
        return None
    shape, tiles = sizes_text(tensor), sizes_text(covering(tensor, view))
    return f"to cover {shape} by these tiles, the outermost level is {tiles}: ceildiv(size, tile)"


def coordinates(view: View, index: Index) -> Index:
    """Return the coordinates in the tensor of a tiled index: tile by tile of tiles."""
    rank = len(view.tiles[0])
    found = tuple(
        flatten(levels, tuple(index[k::rank]))
        for k, levels in enumerate(zip(*view.tiles, strict=True))
    )
    return found if view.skew is None else view.skew.coordinates(found)


def tiled_index(view: View, coordinates: Index) -> Index:
    """Return the inverse of `coordinates`."""
    if view.skew is not None:
        coordinates = view.skew.tiled(coordinates)
    levels = zip(*view.tiles, strict=True)
    by_dimension = [unflatten(sizes, c) for sizes, c in zip(levels, coordinates, strict=True)]
    return tuple(i for level in zip(*by_dimension, strict=True) for i in level)


def limits(view: View, shape: Sizes, index: Index) -> list[tuple[Any, Int]]:
    """Return the coordinates of the padded dimensions, each with its exclusive upper limit.

    Of a skewed dimension also the opposite of its coordinate, which has to stay below 1.
    """
    found = coordinates(view, index)
    bounded = zip(found, shape, shape_of_view(view), strict=True)
    above = [(c, n) for c, n, spanned in bounded if not _is_same(n, spanned)]
    return above if view.skew is None else [*above, (-found[view.skew.dim], 1)]


def mask(limits: Iterable[tuple[Any, Int]]) -> Any:
    """Return 1 where all coordinates are below their limits, else 0; true or false for arrays."""
    inside: Any = 1
    for c, n in limits:
        inside = where(inside, c < n, 0)
    return inside if _is_expr(inside) or is_array(inside) else int(inside)


_PADDED = "its tiles pad the tensor; the layout's mask is 1 where there is an element"


def check_inside(shape: Sizes, coordinates: Index, owner: str, hint: str = _PADDED) -> None:
    """Raise LegoError, with this hint, where numbers are known to lie outside of the tensor."""
    for k, (c, n) in enumerate(zip(coordinates, shape, strict=True)):
        if _is_expr(c):
            continue
        least, greatest = (c.min(initial=0), c.max(initial=0)) if is_array(c) else (c, c)
        if least < 0 or construct.less(int(greatest), n) == 0:
            raise LegoError(
                f"{owner}: coordinate {least if least < 0 else greatest} in dimension {k} is "
                f"outside of the tensor {sizes_text(shape)}",
                hint=hint,
            )


def derive_inside(shape: Sizes, coordinates: Index, make: Callable[[Index], Any]) -> Any:
    """Return what `make` derives from coordinates that lie inside of the tensor.

    It is derived on symbols with the ranges of the tensor, so that nothing is left that would only
    matter in the padding; then they are replaced by the coordinates.
    """
    symbols = {
        k: Sym(f"coordinate {k}", 0, construct.sub(n, 1))
        for k, (c, n) in enumerate(zip(coordinates, shape, strict=True))
        if _is_expr(c)
    }
    made = make(tuple(operand(symbols.get(k, c)) for k, c in enumerate(coordinates)))
    return replaced(made, {s: coordinates[k] for k, s in symbols.items()}) if symbols else made


def is_uniform(n: Int, start: Int, coordinate: Int) -> bool:
    """Return whether `coordinate < n` is proven to hold exactly where `start < n` does.

    It is where both always hold, and where coordinates are less than g above a start that, as n,
    is a multiple of g.
    """
    if prover.is_less(coordinate, n) and prover.is_less(start, n):
        return True
    lo, hi = bounds(construct.sub(coordinate, start))
    if lo is None or hi is None or lo < 0:
        return False
    step = hi + 1
    return step == 1 or (polynomial.divides(step, start) and polynomial.divides(step, n))


def _is_same(a: Int, b: Int) -> bool:
    difference = construct.sub(a, b)
    return isinstance(difference, int) and difference == 0


def _is_expr(x: Any) -> bool:
    return isinstance(x, Expr)
