"""Tiles out of nothing, of other tiles, and other layouts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.frontend.coercion import number_attribute
from lego_mlir.frontend.dtypes import check_dtype, is_unsigned, mlir_element
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.tiles.placement import checked_layout
from lego_mlir.frontend.tiles.sizes import held_size, is_size
from lego_mlir.frontend.tiles.tile import Tile, holding_warps, restricted, spread, type_of, warps_of
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value, as_value
from lego_mlir.index.integers import python_integers
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import tile_type


def full(shape: Sequence[int], number: Operand, dtype: str | None = None) -> Value:
    """Return a tile whose elements all are one number; in kernels of threads a vector.

    Args:
        shape: the sizes; `()` for a scalar.
        number: a number, or a scalar value.
        dtype: the name of the element type, such as "f32"; by default the value's.

    Raises:
        LegoError: the sizes are none, or a number has no type.
    """
    trace = current("full")
    sizes = checked_sizes(shape, trace)
    if isinstance(number, Value) and dtype is None:
        dtype = number.dtype
    if dtype is None:
        raise trace.error(f"'full' of {number!r} needs a type", hint='lg.full((128,), 0, "f32")')
    check_dtype(dtype, trace.error)
    element, unsigned = mlir_element(dtype), is_unsigned(dtype)
    if trace.warps is None or not sizes:
        kind = ir.VectorType.get(list(sizes), element) if sizes else element
        return as_value(number, kind, trace, unsigned=unsigned)
    return restricted(spread(number, sizes, element, trace, unsigned=unsigned), sizes)


def zeros(shape: Sequence[int], dtype: str) -> Value:
    """Return a tile of zeros; in kernels of threads a vector.

    Args:
        shape: its sizes.
        dtype: the name of the element type, such as "f32".
    """
    return full(shape, 0, dtype)


def zeros_like(x: Value) -> Value:
    """Return zeros of the shape and element type of a value."""
    current("zeros_like")
    return full(x.shape, 0, x.dtype)


def arange(count: int) -> Tile:
    """Return the tile of the i32 numbers 0, 1, ..., `count` - 1."""
    return iota((count,), 0)


def iota(shape: Sequence[int], axis: int) -> Tile:
    """Return the tile of each element's i32 index along a dimension.

    Args:
        shape: the sizes.
        axis: the dimension; negative ones count from the last.
    """
    name = "arange" if len(shape) == 1 else "iota"
    trace = current(f"lg.{name}")
    warps_of(trace, f"lg.{name}")
    sizes = checked_sizes(shape, trace)
    dim = checked_axis(axis, sizes, trace, name)
    kind = type_of(sizes, ir.IntegerType.get_signless(32), trace)
    (found,) = trace.once((tiles.IOTA, kind, dim), lambda: [tiles.iota(kind, dim, trace.here())])
    return restricted(Tile(found, sizes, trace), sizes)


def item(tile: Tile) -> Value:
    """Return the element of a tile of one as a scalar, which every thread has."""
    trace = current("item")
    checked_tile(tile, trace, "item")
    if any(n != 1 for n in tile.shape):
        raise trace.error(
            f"{tile.described} has more than one element", hint="reductions give one: lg.sum(tile)"
        )
    return scalar_of(tile)


def scalar_of(tile: Tile) -> Value:
    """Return the element of a tile of one as a scalar."""
    found = tiles.item(tile.ssa, tile.trace.here())
    return Value(found, tile.trace, unsigned=is_unsigned(tile.dtype))


def restrict(tile: Tile, mask: Value) -> Tile:
    """Return a tile whose elements are invalid where a mask is false.

    Reductions, scans and dots ignore them, and stores drop them.

        y.tile(128)[k] = lg.restrict(x, lg.arange(128) < n)

    Args:
        tile: any.
        mask: truth values, which broadcast to the tile's shape.
    """
    trace = current("restrict")
    checked_tile(tile, trace, "restrict")
    i1 = ir.IntegerType.get_signless(1)
    met = spread(mask, tile.shape, i1, trace)
    return tile.like(tiles.restrict(tile.ssa, met.ssa, trace.here()))


def fill(tile: Tile, number: float) -> Tile:
    """Return a tile whose invalid elements are valid, and a number.

    Reductions count them, and stores write them. What adds up padded tiles in a loop needs it, for
    an invalid element makes that of the sum invalid.

    Args:
        tile: any.
        number: of the tile's element type.
    """
    trace = current("fill")
    checked_tile(tile, trace, "fill")
    given: Any = number  # it may come from anywhere
    fits = isinstance(given, int | float) and not isinstance(given, bool)
    unsigned = is_unsigned(tile.dtype)
    value = number_attribute(number, tile.element, unsigned=unsigned) if fits else None
    if value is None:
        raise trace.error(
            f"{tile.described} is filled with a number of {tile.dtype}, not {number!r}"
        )
    filled = tile.like(tiles.fill(tile.ssa, value, trace.here()))
    return restricted(filled, tile.shape)  # what holds it may be larger


def broadcast_to(x: Operand, shape: Sequence[int]) -> Tile:
    """Return a tile, or a scalar, repeated to a shape as NumPy broadcasts it."""
    trace = current("broadcast_to")
    sizes = checked_sizes(shape, trace)
    if not isinstance(x, Value):
        raise trace.error(f"'broadcast_to' is for values, not {x!r}", hint="lg.full makes a tile")
    element = x.ssa.type if not isinstance(x, Tile) else x.element
    return spread(x, sizes, element, trace, unsigned=is_unsigned(x.dtype))


def convert(tile: Tile, layout: Any) -> Tile:
    """Return the same tile in a distributed layout.

    What follows is computed in this layout as far as it pays.

    Args:
        tile: any.
        layout: where its elements lie among warps, lanes and registers: a `DistributedLayout`, a
            layout from (warp, lane, register) to the tile's index, or its text.

    Raises:
        LegoError: it does not have the tile's sizes, or the kernel's warps.
    """
    trace = current("convert")
    checked_tile(tile, trace, "convert")
    held = tuple(tile.ssa.type.shape)
    layout = checked_layout(layout, held, tile.described, trace)
    # What is computed of it has a type without a layout until the compiler chooses one.
    placed = tiles.convert(tile_type(held, tile.element, layout), tile.ssa, trace.here())
    return tile.like(tiles.convert(tile_type(held, tile.element), placed, trace.here()))


def dot(
    a: Tile,
    b: Tile,
    accumulator: Tile | None = None,
    instruction: tiles.DotInstruction | None = None,
) -> Tile:
    """Return `a @ b + accumulator`, of tiles m×k, k×n and m×n.

    Args:
        a: a tile, m×k.
        b: a tile, k×n, of the same element type.
        accumulator: a tile, m×n; by default zeros, of f32, of f64 for f64, of i32 for integers.
        instruction: what multiplies them; by default what costs less.

    Raises:
        LegoError: the shapes or types do not go together.
    """
    trace = current("dot")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise trace.error(
            f"there is no matrix multiplication of {a.described} and {b.described}",
            hint="the columns of the first are the rows of the second, of one element type",
        )
    shape = a.shape[0], b.shape[1]
    is_float = isinstance(a.element, ir.FloatType)
    if accumulator is None:
        kind = "f64" if a.dtype == "f64" else "f32" if is_float else "i32"
        made = full(shape, 0, kind)
        assert isinstance(made, Tile)
        accumulator = made
    if accumulator.shape != shape or isinstance(accumulator.element, ir.FloatType) != is_float:
        raise trace.error(
            f"the product of {a.described} and {b.described} is added to {accumulator.described}",
            hint=f"the accumulator has the sizes {shape}; floating point is summed in floating "
            "point, integers in integers",
        )
    made = tiles.dot(a.ssa, b.ssa, accumulator.ssa, trace.here(), instruction)
    return accumulator.like(made)


def take(tile: Tile, indices: Tile, axis: int = 0) -> Tile:
    """Return the elements of a tile at indices along a dimension.

    Args:
        tile: any.
        indices: integers, a tile of as many dimensions; all but `axis` have the tile's sizes.
        axis: the dimension; negative ones count from the last.
    """
    trace = current("take")
    checked_tile(tile, trace, "take")
    checked_tile(indices, trace, "take")
    dim = checked_axis(axis, tile.shape, trace, "take")
    others = [s[:dim] + s[dim + 1 :] for s in (tile.shape, indices.shape)]
    if len(tile.shape) != len(indices.shape) or others[0] != others[1]:
        raise trace.error(
            f"'take' of {tile.described} along dimension {dim} at {indices.described}",
            hint="but for this dimension both have the same sizes",
        )
    if not isinstance(indices.element, ir.IntegerType) or indices.dtype == "i1":
        raise trace.error(
            f"the indices of 'take' are {indices.described}, no integers",
            hint='.to("i32") converts them',
        )
    at = indices if indices.dtype == "i32" else indices.to("i32")
    kind = type_of(indices.shape, tile.element, trace)
    return tile.shaped(tiles.take(kind, tile.ssa, at.ssa, dim, trace.here()), indices.shape)


def join(*parts: Tile) -> Tile:
    """Return tiles of one shape along a new last dimension: 2 or 4 of them, a power of two."""
    trace = current("join")
    for tile in parts:
        checked_tile(tile, trace, "join")
    if not parts or len(parts) & (len(parts) - 1):
        raise trace.error(f"'join' takes 1, 2, 4, ... tiles, not {len(parts)}")
    first = parts[0]
    if {x.described for x in parts} != {first.described}:
        shown = ", ".join(x.described for x in parts)
        raise trace.error(f"'join' takes tiles of one shape and type, not {shown}")
    shape = (*first.shape, len(parts))
    kind = type_of(shape, first.element, trace)
    return first.shaped(tiles.join(kind, [x.ssa for x in parts], trace.here()), shape)


def split(tile: Tile) -> tuple[Tile, ...]:
    """Return the tiles along the last dimension, of a size that is a power of two."""
    trace = current("split")
    checked_tile(tile, trace, "split")
    count = tile.shape[-1] if tile.shape else 0
    if len(tile.shape) < 2 or held_size(count, holding_warps(trace)) != count:
        raise trace.error(
            f"'split' of {tile.described}",
            hint="the last of at least two dimensions has a size that is a power of two",
        )
    shape = tile.shape[:-1]
    kind = type_of(shape, tile.element, trace)
    found = tiles.split(kind, tile.ssa, count, trace.here())
    return tuple(tile.shaped(x, shape) for x in found)


_SIZES = "sizes of tiles are known while a kernel is compiled: (128, 64)"


def checked_sizes(shape: Any, trace: Trace) -> tuple[int, ...]:
    """Return sizes; raise LegoError unless they are positive integers."""
    shape = python_integers(shape)
    sizes = tuple(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else None
    if sizes is None or not all(map(is_size, sizes)):
        raise trace.error(f"sizes are positive integers, not {shape!r}", hint=_SIZES)
    return sizes


def checked_axis(axis: Any, shape: Sequence[int], trace: Trace, what: str) -> int:
    """Return a dimension's number from 0; raise LegoError if there is no such dimension."""
    rank, axis = len(shape), python_integers(axis)
    if type(axis) is not int or not -rank <= axis < rank:
        raise trace.error(
            f"'{what}' along dimension {axis!r} of a tile of sizes {tuple(shape)}",
            hint=f"its dimensions are {', '.join(map(str, range(rank)))}" if rank else None,
        )
    return axis % rank


def checked_tile(x: Any, trace: Trace, what: str) -> Tile:
    """Return a tile; raise LegoError if it is none."""
    if not isinstance(x, Tile):
        shown = x.described if isinstance(x, Value) else repr(x)
        raise trace.error(
            f"'{what}' is for tiles, not {shown}",
            hint="loads make tiles in kernels of @lg.kernel(grid=..., warps=4): x[i, :]",
        )
    return x
