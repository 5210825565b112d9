"""Sorts of tiles, and the greatest elements.

Rows are sorted by a network of comparisons, of about log2(n)² / 2 rounds. The few greatest elements
of a long row are found by a binary search for a number that few elements reach, whose steps count
elements, and then sorted. Elements past the end of a tile stay there. What `lg.restrict` excludes
comes last, as the number that nothing comes behind: NaN or infinity, or the greatest or smallest
integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, prod
from typing import Any

from lego_mlir.frontend.coercion import number_attribute
from lego_mlir.frontend.control.loops import while_
from lego_mlir.frontend.operators import where
from lego_mlir.frontend.tiles.creation import (
    arange,
    checked_axis,
    checked_tile,
    fill,
    full,
    iota,
    take,
)
from lego_mlir.frontend.tiles.reductions import any as any_of
from lego_mlir.frontend.tiles.reductions import checked_tiles
from lego_mlir.frontend.tiles.reductions import sum as sum_of
from lego_mlir.frontend.tiles.scans import cumsum
from lego_mlir.frontend.tiles.tile import Tile, restricted, warps_of
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles

_PACKED = {16: ("i16", "i32"), 32: ("i32", "i64")}
"""By the bits of a float: the integers of its bits, and of it with a place."""

_LAST_PLACE = (1 << 16) - 1

_LEAST_SEARCHED = {"bf16": 129, "f16": 129, "f32": 128}
_SEARCHED_PER_FOUND = {"bf16": 8, "f16": 8, "f32": 4}
"""Elements of a row whose greatest ones are searched for, at least, by their type: in all, and for
each one that is asked for. Sorts of shorter rows are as fast (bench/results/topk.jsonl)."""

SEARCHED = 64
"""Elements that a thread can search."""

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
    width = _packed_width(tile, dim)
    if is_searched(tile.shape[dim], k, tile.dtype) and _fits(tile, trace):
        assert width is not None
        values, places = _searched(tile, dim, width, k, descending, trace)
    else:
        values, places = _with_places(tile, dim, descending, trace, "topk")
    shape = (*tile.shape[:dim], k, *tile.shape[dim + 1 :])
    first = arange(k) if len(shape) == 1 else iota(shape, dim)
    return take(values, first, dim), take(places, first, dim)


def is_searched(size: int, k: int, dtype: str) -> bool:
    """Return whether `topk` searches for k of so many elements, if the registers have room."""
    least = _LEAST_SEARCHED.get(dtype)
    return least is not None and max(least, _SEARCHED_PER_FOUND[dtype] * k) <= size <= _LAST_PLACE


def _fits(tile: Tile, trace: Trace) -> bool:
    """Return whether the threads' registers hold what a search computes."""
    threads = warps_of(trace) * WARP_THREADS
    return prod(tile.shape) <= threads * SEARCHED


def _found(k: int) -> int:
    """Return how many elements a search for k of them ends with at most: a power of two."""
    return 1 << (2 * k - 1).bit_length()


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
    (words,) = _sorted(
        [_words(tile, dim, width, descending=descending)], [descending], dim, trace, what
    )
    return _unpacked(words, tile, width, descending=descending)


def _searched(
    tile: Tile, dim: int, width: int, k: int, descending: bool, trace: Trace
) -> tuple[Tile, Tile]:
    """Return elements of a tile along a dimension, the first k in order, and where they were.

    Words of an element above its place are compared, as a sort of whole rows compares them. First
    a binary search finds the bits of an element, from the highest to the lowest, that k elements
    or more reach, but no more than are sorted, if there is one; else that of the last of the k
    elements, and a second search finds the last place of those equal to it. Then those found move
    together: element j comes from the first place up to which there are j + 1 of them.
    """
    word, most = _PACKED[width][1], _found(k)
    size, row = tile.shape[dim], tuple(1 if d == dim else n for d, n in enumerate(tile.shape))
    least = -(1 << (width - 1))
    key, place = _keys(tile, dim, width, descending=descending)

    def search(low: Any, step: int, count: Any, reaches: Any) -> Any:
        """Return the greatest number from `low` that k elements reach, or one that few do."""
        steps = full(row, step, "i32")

        @while_(lambda low, step, count: any_of((step != 0) & (count > most)), (low, steps, count))
        def found(low: Any, step: Any, count: Any) -> Any:
            middle = low + step
            now: Any = sum_of(reaches(middle).to("i32"), dim, keepdims=True)
            stays = (now >= k) & (count > most)
            return where(stays, middle, low), step >> 1, where(stays, now, count)

        return found

    above: Any = sum_of((key >= 0).to("i32"), dim, keepdims=True)
    is_positive = above >= k
    low = where(is_positive, full(row, 0, "i32"), least)
    count = where(is_positive, above, size)
    low, _, count = search(low, 1 << (width - 2), count, lambda middle: key >= middle)

    def reaches(last: Any) -> Any:
        return (key > low) | ((key == low) & (place >= last))

    # Only what is excluded has place 0. It is left out here, and fills what stays free.
    first, _, _ = search(full(row, 1, "i32"), (_LAST_PLACE + 1) >> 1, count, reaches)
    until: Any = cumsum(reaches(first).to("i32"), dim)

    wanted: Any = iota(tuple(most if d == dim else n for d, n in enumerate(tile.shape)), dim)
    at: Any = wanted * 0
    for step in reversed([1 << bit for bit in range(size.bit_length())]):
        after = at + step
        last: Any = where(after > size, size, after) - 1
        is_before = take(until, last, dim) <= wanted
        at = where((after <= size) & is_before, after, at)
    is_found = at < size
    at = where(is_found, at, size - 1)
    found_key: Any = take(key, at, dim)
    found_place: Any = _LAST_PLACE - at
    found_place = found_place if word == "i32" else found_place.to(word)
    words: Any = (found_key.to(word) << width) | found_place
    excluded = (_infinity(tile, width) ^ -1) << width if descending else least << width
    words = where(is_found, words, excluded)
    (words,) = _sorted([words], [True], dim, trace, "topk")
    if not descending:
        words = ~words
    return _unpacked(words, tile, width, descending=descending)


def _words(tile: Tile, dim: int, width: int, *, descending: bool) -> Tile:
    """Return the words of a tile's elements, above their places, in the elements' order."""
    word = _PACKED[width][1]
    magnitude = (1 << (width - 1)) - 1
    ordered = _ordered(tile, width)
    places: Any = iota(tile.shape, dim)
    places = _LAST_PLACE - places if descending else places
    words: Any = (ordered.to(word) << width) | (places if word == "i32" else places.to(word))
    # What is excluded comes behind all else: as -inf, or NaN, and the last place.
    last = (
        (_infinity(tile, width) ^ -1) << width if descending else (magnitude << width) | _LAST_PLACE
    )
    return fill(words, last)


def _keys(tile: Tile, dim: int, width: int, *, descending: bool) -> tuple[Any, Any]:
    """Return what words have above places and the places, each of i32: greater ones come first.

    A thread knows the places of its elements, and keeps none. Only what is excluded has place 0.
    """
    key: Any = _ordered(tile, width)
    key = key if descending else ~key
    key = key if width == 32 else key.to("i32")
    places: Any = _LAST_PLACE - iota(tile.shape, dim)
    places = where(key == key, places, 0)  # excluded where the key is
    least = _infinity(tile, width) ^ -1 if descending else -(1 << (width - 1))
    return fill(key, least), fill(places, 0)


def _ordered(tile: Tile, width: int) -> Any:
    """Return the bits of a tile's elements as signed integers in the elements' order."""
    magnitude = (1 << (width - 1)) - 1
    signed: Any = tile.bitcast(_PACKED[width][0])
    ordered = signed ^ ((signed >> (width - 1)) & magnitude)
    return where(tile != tile, magnitude, where(tile == 0.0, 0, ordered))


def _infinity(tile: Tile, width: int) -> int:
    """Return the bits of a tile's infinity, an integer of so many bits."""
    exponent = _EXPONENTS[tile.dtype]
    return ((1 << exponent) - 1) << (width - 1 - exponent)


def _unpacked(words: Any, tile: Tile, width: int, *, descending: bool) -> tuple[Tile, Tile]:
    """Return the elements of a tile's type that words have, and the places below them."""
    bits, word = _PACKED[width]
    magnitude = (1 << (width - 1)) - 1
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
    with trace.inside(block, is_isolated=True):
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
