"""Reductions of tiles.

    lg.sum(x)                        of all elements: a scalar, which every thread has
    lg.sum(x, axis=1)                a tile without dimension 1
    lg.sum(x, axis=1, keepdims=True) a tile whose dimension 1 has the size 1

Invalid elements are ignored: those past the end of what a tile was loaded from, and those that
`lg.restrict` excludes. Sums and products of f16 and bf16 are computed in f32, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

from lego_mlir.frontend.casts import is_truth
from lego_mlir.frontend.coercion import number_attribute
from lego_mlir.frontend.control.regions import call, matched
from lego_mlir.frontend.operators import where
from lego_mlir.frontend.tiles.creation import checked_axis, checked_tile, iota, scalar_of
from lego_mlir.frontend.tiles.tile import Tile, type_of
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles

Axis: TypeAlias = int | tuple[int, ...] | None

_MOST = (1 << 31) - 1
"""The index of no element."""


def sum(tile: Tile, axis: Axis = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the sum of the elements along dimensions.

    Integers wrap around; truth values are counted, in i32.

    Args:
        tile: numbers.
        axis: a dimension, or several; all of them by default. Negative ones count from the last.
        keepdims: whether the dimensions stay, with size 1.
    """
    return _accumulated("add", "sum", tile, axis, keepdims=keepdims)


def prod(tile: Tile, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """Return the product of the elements along dimensions; arguments as those of `sum`."""
    return _accumulated("mul", "prod", tile, axis, keepdims=keepdims)


def max(tile: Tile, axis: Axis = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the greatest element along dimensions, NaN if one is; arguments as those of `sum`."""
    return _extreme("max", tile, axis, keepdims=keepdims)


def min(tile: Tile, axis: Axis = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the smallest element along dimensions, NaN if one is; arguments as those of `sum`."""
    return _extreme("min", tile, axis, keepdims=keepdims)


def any(tile: Tile, axis: Axis = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return whether an element along dimensions is true; arguments as those of `sum`."""
    return _of_truths("or", "any", tile, axis, keepdims=keepdims)


def all(tile: Tile, axis: Axis = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return whether all elements along dimensions are true; arguments as those of `sum`."""
    return _of_truths("and", "all", tile, axis, keepdims=keepdims)


def argmax(tile: Tile, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """Return the i32 index of the first greatest element, or of the first NaN if there is one.

    Args:
        tile: numbers.
        axis: the dimension; by default the tile is taken as one of one dimension, row-major.
        keepdims: whether the dimension stays, with size 1.
    """
    return _place("argmax", tile, axis, keepdims=keepdims)


def argmin(tile: Tile, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """Return the i32 index of the first smallest element; otherwise as `argmax`."""
    return _place("argmin", tile, axis, keepdims=keepdims)


def reduce(
    function: Callable[..., Any],
    operand: Tile | tuple[Tile, ...],
    axis: Axis = None,
    *,
    identity: Any = None,
    keepdims: bool = False,
) -> Any:
    """Return the combination of the elements along dimensions by a function of one's own.

        lg.reduce(lambda a, b: lg.maximum(lg.abs(a), lg.abs(b)), x, axis=1, identity=0.0)

    Args:
        function: takes two scalars and returns one; of several tiles it takes two tuples and
            returns one. It is associative and commutative.
        operand: a tile, or up to four of one shape.
        axis: a dimension, or several; all of them by default.
        identity: a number, or a tuple of them, that combines with any to that other. It stands for
            invalid elements, and is needed where there are some.
        keepdims: whether the dimensions stay, with size 1.

    Returns:
        What `sum` returns, or a tuple of these.
    """
    trace = current("reduce")
    parts = checked_tiles(operand, trace, "reduce")
    dims = _dims(axis, parts[0], trace, "reduce")
    attributes = identities(identity, parts, trace)
    for dim in reversed(dims):
        shape = _kept(parts[0].shape, dim)
        kinds = [type_of(shape, part.element, trace) for part in parts]
        op = tiles.combine_with(
            tiles.REDUCE_WITH, kinds, [x.ssa for x in parts], dim, attributes, trace.here()
        )
        fill_body(op, function, parts, trace, is_one=not isinstance(operand, tuple))
        parts = [x.shaped(found, shape) for x, found in zip(parts, op.results, strict=True)]
    results = tuple(_finished(part, dims, keepdims=keepdims) for part in parts)
    return results if isinstance(operand, tuple) else results[0]


def checked_tiles(operand: Any, trace: Trace, what: str) -> list[Tile]:
    """Return the tiles of a reduction or scan by a function.

    Raises:
        LegoError: they are none, too many, or of different shapes.
    """
    several = operand if isinstance(operand, tuple) else (operand,)
    parts = [checked_tile(x, trace, what) for x in several]
    if not 1 <= len(parts) <= tiles.MOST_COMBINED:
        raise trace.error(f"'{what}' takes one to {tiles.MOST_COMBINED} tiles, not {len(parts)}")
    if len({part.shape for part in parts}) > 1:
        shown = ", ".join(part.described for part in parts)
        raise trace.error(f"'{what}' takes tiles of one shape, not {shown}")
    return parts


def identities(given: Any, parts: Sequence[Tile], trace: Trace) -> list[Any] | None:
    """Return the attributes of identities, one a tile; `None` if there are none."""
    if given is None:
        return None
    numbers = given if isinstance(given, tuple) else (given,)
    if len(numbers) != len(parts):
        raise trace.error(f"{len(parts)} tiles have so many identities, not {len(numbers)}")
    found = []
    for x, part in zip(numbers, parts, strict=True):
        is_number = isinstance(x, int | float) and not isinstance(x, Value)
        attribute = (
            number_attribute(x, part.element, unsigned=part.dtype.startswith("u"))
            if is_number
            else None
        )
        if attribute is None:
            raise trace.error(
                f"an identity of {part.described} is a number of {part.dtype}, not {x!r}"
            )
        found.append(attribute)
    return found


def fill_body(
    op: Any, function: Callable[..., Any], parts: Sequence[Tile], trace: Trace, *, is_one: bool
) -> None:
    """Trace the function of a reduction or scan into the operation's region.

    Args:
        op: the operation, whose block has the arguments.
        function: takes two scalars, or two tuples of scalars.
        parts: the tiles.
        trace: of the kernel.
        is_one: it takes scalars.
    """
    block = op.regions[0].blocks[0]
    location = trace.location()
    unsigned = [part.dtype.startswith("u") for part in parts] * 2
    with trace.inside(block, is_isolated=True):
        values = [
            Value(x, trace, unsigned=sign)
            for x, sign in zip(block.arguments, unsigned, strict=True)
        ]
        first, second = values[: len(parts)], values[len(parts) :]
        arguments = [*first, *second] if is_one else [tuple(first), tuple(second)]
        takes = "two scalars" if is_one else f"two tuples of {len(parts)} scalars"
        found = call(function, arguments, trace, "the function that combines elements", takes)
        returned = matched(found, first, trace, "the function combines elements of")
        ir.Operation.create("gpu.yield", operands=returned, loc=location)


def _accumulated(kind: str, what: str, tile: Any, axis: Axis, *, keepdims: bool) -> Value:
    trace = current(what)
    checked_tile(tile, trace, what)
    if is_truth(tile.ssa.type):
        tile = tile.to("i32")
    tile.check_arithmetic(what)
    dtype = tile.dtype
    wide = tile.to("f32") if dtype in ("f16", "bf16") else tile
    found = _by_kind(kind, what, wide, axis, keepdims=keepdims)
    return found if found.dtype == dtype else found.to(dtype)


def _extreme(kind: str, tile: Any, axis: Axis, *, keepdims: bool) -> Value:
    checked_tile(tile, current(kind), kind)
    tile.check_arithmetic(kind)
    sign = "u" if tile.dtype.startswith("u") else ""
    return _by_kind(f"{sign}{kind}", kind, tile, axis, keepdims=keepdims)


def _of_truths(kind: str, what: str, tile: Any, axis: Axis, *, keepdims: bool) -> Value:
    checked_tile(tile, current(what), what)
    truths = tile if is_truth(tile.ssa.type) else tile != 0
    return _by_kind(kind, what, truths, axis, keepdims=keepdims)


def _by_kind(kind: str, what: str, tile: Tile, axis: Axis, *, keepdims: bool) -> Value:
    """Reduce a tile by lego.reduce."""
    trace = tile.trace
    dims = _dims(axis, tile, trace, what)
    for dim in reversed(dims):
        shape = _kept(tile.shape, dim)
        result = type_of(shape, tile.element, trace)
        tile = tile.shaped(tiles.reduce(result, tile.ssa, kind, dim, trace.here()), shape)
    return _finished(tile, dims, keepdims=keepdims)


def _place(what: str, tile: Any, axis: int | None, *, keepdims: bool) -> Value:
    """Reduce elements together with their indices."""
    trace = current(what)
    checked_tile(tile, trace, what)
    tile.check_arithmetic(what)
    is_max = what == "argmax"
    if axis is None:
        places, stride = iota(tile.shape, -1), tile.shape[-1]
        for dim in reversed(range(len(tile.shape) - 1)):
            places = places + iota(tile.shape, dim) * stride
            stride *= tile.shape[dim]
    else:
        places = iota(tile.shape, checked_axis(axis, tile.shape, trace, what))

    def first(a: Any, b: Any) -> Any:
        (x, i), (y, j) = a, b
        is_better = x > y if is_max else x < y
        is_same = x == y
        if isinstance(tile.element, ir.FloatType):
            x_is_nan, y_is_nan = x != x, y != y
            is_better = (is_better & ~y_is_nan) | (x_is_nan & ~y_is_nan)
            is_same = is_same | (x_is_nan & y_is_nan)
        stays = is_better | (is_same & (i < j))
        return where(stays, x, y), where(stays, i, j)

    identity = _least(tile, is_max=is_max), _MOST
    found = reduce(first, (tile, places), axis, identity=identity, keepdims=keepdims)
    place: Value = found[1]
    return place


def _least(tile: Tile, *, is_max: bool) -> int | float:
    """Return the number of an element type that no other is worse than."""
    if isinstance(tile.element, ir.FloatType):
        return -inf if is_max else inf
    bits = tile.element.width
    if tile.dtype.startswith("u"):
        return 0 if is_max else (1 << bits) - 1
    low: int = -(1 << (bits - 1))
    return low if is_max else -low - 1


def _dims(axis: Any, tile: Tile, trace: Trace, what: str) -> list[int]:
    """Return the dimensions of a reduction, ascending."""
    rank = len(tile.shape)
    given = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return sorted({checked_axis(d, tile.shape, trace, what) for d in given})


def _kept(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], 1, *shape[dim + 1 :])


def _finished(tile: Tile, dims: Sequence[int], *, keepdims: bool) -> Value:
    """Return the result of a reduction: a scalar where no dimension is left."""
    if keepdims:
        return tile
    left = tuple(n for d, n in enumerate(tile.shape) if d not in dims)
    return tile.reshape(left) if left else scalar_of(tile)
