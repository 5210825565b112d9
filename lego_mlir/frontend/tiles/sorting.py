"""Sorts of tiles, and the greatest elements.

Rows are sorted by a network of comparisons, of about log2(n)² / 2 rounds. Elements past the end of
a tile stay there. What `lg.restrict` excludes comes last, as the number that nothing comes behind:
NaN or infinity, or the greatest or smallest integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

from lego_mlir.frontend.coercion import number_attribute
from lego_mlir.frontend.operators import where
from lego_mlir.frontend.tiles.creation import arange, checked_axis, checked_tile, fill, iota, take
from lego_mlir.frontend.tiles.reductions import checked_tiles
from lego_mlir.frontend.tiles.tile import Tile, restricted
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles

_PACKED = {16: ("i16", "i32"), 32: ("i32", "i64")}
"""By the bits of a float: the integers of its bits, and of it with a place."""

_LAST_PLACE = (1 << 16) - 1

_EXPONENTS = {"bf16": 8, "f16": 5, "f32": 8}
"""The bits of exponents."""


def sort(operand: Any, axis: int = -1, *, descending: bool = False) -> Any:
    """Return a tile sorted along a dimension, or several whose elements are sorted together.

        keys, values = lg.sort((keys, values))

    NaN is greater than all numbers. Several tiles are sorted by the first one, by the second one
    where that has equal elements, and so on.

    Args:
        operand: a tile of numbers, or up to four of one shape.
        axis: the dimension; negative ones count from the last.
        descending: the greatest elements first, of all tiles.
    """
    trace = current("sort")
    parts = checked_tiles(operand, trace, "sort")
    found = _sorted(parts, [descending] * len(parts), axis, trace, "sort")
    return tuple(found) if isinstance(operand, tuple) else found[0]


def argsort(tile: Tile, axis: int = -1, *, descending: bool = False) -> Tile:
    """Return the indices, of i32, that sort a tile along a dimension; equal elements stay in order.

    Args:
        tile: of numbers.
        axis: the dimension; negative ones count from the last.
        descending: the greatest elements first.
    """
    trace = current("argsort")
    return _with_places(tile, axis, descending, trace, "argsort")[1]


def topk(tile: Tile, k: int, axis: int = -1, *, descending: bool = True) -> tuple[Tile, Tile]:
    """Return the k greatest elements along a dimension, in order, and their indices, of i32.

    Of equal elements those at lower indices come first. NaN is greater than all numbers. Zeros of
    f32, f16 and bf16 have no sign afterwards.

    Args:
        tile: of numbers.
        k: how many, at most the dimension's size.
        axis: the dimension; negative ones count from the last.
        descending: the greatest; otherwise the smallest.
    """
    trace = current("topk")
    checked_tile(tile, trace, "topk")
    dim = checked_axis(axis, tile.shape, trace, "topk")
    if type(k) is not int or not 1 <= k <= tile.shape[dim]:
        raise trace.error(
            f"'topk' of {tile.described} takes a number of elements from 1 to {tile.shape[dim]}, "
            f"not {k!r}"
        )
    values, places = _with_places(tile, dim, descending, trace, "topk")
    shape = (*tile.shape[:dim], k, *tile.shape[dim + 1 :])
    first = arange(k) if len(shape) == 1 else iota(shape, dim)
    return take(values, first, dim), take(places, first, dim)


def _with_places(
    tile: Tile, axis: int, descending: bool, trace: Trace, what: str
) -> tuple[Tile, Tile]:
    """Return a tile sorted along a dimension, and where its elements were."""
    checked_tile(tile, trace, what)
    dim = checked_axis(axis, tile.shape, trace, what)
    width = _packed_width(tile, dim)
    if width is not None:
        return _with_packed_places(tile, dim, width, descending, trace, what)
    places = iota(tile.shape, dim)
    values, order = _sorted([tile, places], [descending, False], dim, trace, what)
    return values, order


def _packed_width(tile: Tile, dim: int) -> int | None:
    """Return the bits of elements that are sorted in one word with their places, if they fit."""
    if not isinstance(tile.element, ir.FloatType) or tile.shape[dim] > _LAST_PLACE:
        return None
    return tile.element.width if tile.dtype in _EXPONENTS else None


def _with_packed_places(
    tile: Tile, dim: int, width: int, descending: bool, trace: Trace, what: str
) -> tuple[Tile, Tile]:
    """Return a tile sorted along a dimension, and where its elements were, of one sort of integers.

    A word has an element above its place, both so that words are in the elements' order. The bits
    of a float are in the order of signed integers, if those of negative ones are inverted below the
    sign; NaN and -0 get one pattern each, since all NaNs are equal, and both zeros.
    """
    bits, word = _PACKED[width]
    magnitude = (1 << (width - 1)) - 1
    signed: Any = tile.bitcast(bits)
    ordered = signed ^ ((signed >> (width - 1)) & magnitude)
    ordered = where(tile != tile, magnitude, where(tile == 0.0, 0, ordered))
    places: Any = iota(tile.shape, dim)
    places = _LAST_PLACE - places if descending else places
    key: Any = (ordered.to(word) << width) | (places if word == "i32" else places.to(word))
    # What is excluded comes behind all else: as -inf, or NaN, and the last place.
    infinity = ((1 << _EXPONENTS[tile.dtype]) - 1) << (width - 1 - _EXPONENTS[tile.dtype])
    last = (infinity ^ -1) << width if descending else (magnitude << width) | _LAST_PLACE
    (found,) = _sorted([fill(key, last)], [descending], dim, trace, what)
    words: Any = found
    ordered = (words >> width).to(bits)
    values = (ordered ^ ((ordered >> (width - 1)) & magnitude)).bitcast(tile.dtype)
    order = words & _LAST_PLACE
    order = order if word == "i32" else order.to("i32")
    return values, _LAST_PLACE - order if descending else order


def _sorted(
    parts: Sequence[Tile], descending: Sequence[bool], axis: int, trace: Trace, what: str
) -> list[Tile]:
    """Return tiles sorted together, each in its direction where those before it are equal."""
    for part in parts:
        part.check_arithmetic(what)
    dim = checked_axis(axis, parts[0].shape, trace, what)
    last = [
        number_attribute(_last(part, down), part.element, unsigned=part.dtype.startswith("u"))
        for part, down in zip(parts, descending, strict=True)
    ]
    op = tiles.combine_with(
        tiles.SORT_WITH,
        [x.ssa.type for x in parts],
        [x.ssa for x in parts],
        dim,
        last,
        trace.here(),
    )
    block = op.regions[0].blocks[0]
    unsigned = [part.dtype.startswith("u") for part in parts] * 2
    with ir.InsertionPoint(block):
        values = [
            Value(x, trace, unsigned=sign)
            for x, sign in zip(block.arguments, unsigned, strict=True)
        ]
        first, second = values[: len(parts)], values[len(parts) :]
        before = _before(first, second, descending)
        ir.Operation.create("gpu.yield", operands=[before.ssa], loc=trace.location())
    found = [x.like(result) for x, result in zip(parts, op.results, strict=True)]
    return [restricted(tile, tile.shape) for tile in found]


def _before(first: Sequence[Any], second: Sequence[Any], descending: Sequence[bool]) -> Any:
    """Return whether elements come before others: by the first of them that differ."""
    found: Any = None
    for a, b, down in reversed(list(zip(first, second, descending, strict=True))):
        x, y = (b, a) if down else (a, b)
        less, same = x < y, x == y
        if isinstance(a.ssa.type, ir.FloatType):
            x_is_nan, y_is_nan = x != x, y != y
            less = less | (y_is_nan & ~x_is_nan)
            same = same | (x_is_nan & y_is_nan)
        found = less if found is None else less | (same & found)
    return found


def _last(tile: Tile, descending: bool) -> int | float:
    """Return the number of an element type that no other one comes behind."""
    if isinstance(tile.element, ir.FloatType):
        return -inf if descending else nan
    bits = tile.element.width
    if tile.dtype.startswith("u"):
        return 0 if descending else (1 << bits) - 1
    low: int = -(1 << (bits - 1))
    return low if descending else -low - 1
