"""Shapes, element types and attributes of each operation on tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from lego_mlir.analysis.distributed.slices import slice_registers
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.bijectivity import check_stored
from lego_mlir.mlir.tile_ir.types import is_shared_tile, layout_of
from lego_mlir.mlir.tile_ir.verifier.checked import Checked
from lego_mlir.mlir.tile_ir.verifier.regions import check_function

_FLOAT_KINDS = ("add", "mul", "max", "min")
_BOOL_KINDS = ("and", "or", "xor")


# Memory.
def check_access(c: Checked, kind: Any, buffer: Any, origin: Sequence[Any]) -> None:
    """Check an access of a tile in memory, or of an element if it has no `slice`.

    Args:
        c: the operation.
        kind: the type of what is loaded or stored.
        buffer: the memory.
        origin: its first index.

    Raises:
        LegoError: the attributes and types do not belong together.
    """
    layout = c.layouts.of(c.op)
    for name in (dialect.SHARED, dialect.WITHIN, dialect.BY_THREADS, dialect.CHUNK):
        c.require(
            name not in c.op.attributes,
            partial("in a kernel on tiles has the attribute '{}'".format, name),
            "it belongs to the vectors that schedules distribute: leave it out",
        )
    c.require(
        len(origin) == layout.rank + len(layout.symbols),
        lambda: (
            f"has {len(origin)} indices, its layout '{layout}' {layout.rank} dimensions"
            + f" and {len(layout.symbols)} symbols" * bool(layout.symbols)
        ),
        "every dimension has an index, the origin of the tile, and every symbol a value behind "
        "them, or one in lego.sizes",
    )
    element = ir.MemRefType(buffer.type).element_type
    if not isinstance(kind, ir.RankedTensorType):
        c.same_element_type(kind, element, "a value")
        c.require(dialect.SLICE not in c.op.attributes, lambda: f"of a slice has the type {kind}")
    else:
        c.same_element_type(kind, element, "a tile")
        shape = list(ir.RankedTensorType(kind).shape)
        dims = tuple(c.attribute(dialect.SLICE, ir.DenseI64ArrayAttr, "array<i64: 0, 1>"))
        rank = len(shape)
        fits = len(set(dims)) == len(dims) == rank and all(0 <= d < layout.rank for d in dims)
        c.require(
            fits,
            lambda: (
                f"of a tile {shape} has the slice {list(dims)}; its layout has "
                f"the dimensions 0 to {layout.rank - 1}"
            ),
            "slice lists the layout's dimension along which each dimension of the tile extends",
        )
    if dialect.OTHER in c.op.attributes:
        other = c.op.attributes[dialect.OTHER]
        c.require(
            getattr(other, "type", None) == element,
            lambda: f"has other = {other}, and elements of {element}",
            f"write its type along: other = 0 : {element}",
        )
    memory = ir.MemRefType(buffer.type)
    if memory.has_static_shape and not layout.symbols:
        c.require(
            int(layout.size) <= prod(memory.shape),
            lambda: (
                f"has the layout '{layout}' of {layout.size} elements, the buffer {memory} has "
                f"only {prod(memory.shape)}"
            ),
            "the buffer's shape and the sizes of the layout must agree",
        )


def _load(c: Checked) -> None:
    buffer, *origin = list(c.op.operands)
    check_access(c, c.op.results[0].type, buffer, origin)


def _store(c: Checked) -> None:
    value, buffer, *origin = list(c.op.operands)
    check_access(c, value.type, buffer, origin)
    _stored(c)


def _stored(c: Checked) -> None:
    """Check that a store, if it is through a window, loses no element."""
    check_stored(c.op, c.layouts.of(c.op), c.source)


def _indices(c: Checked, operands: Sequence[Any], shape: tuple[int, ...]) -> None:
    """Check tiles of indices of a layout's dimensions, and the values of its symbols."""
    layout = c.layouts.of(c.op)
    count = len(layout.symbols)
    indices, sizes = operands[: len(operands) - count], operands[len(operands) - count :]
    names = ", ".join(symbol.name for symbol in layout.symbols)
    c.require(
        len(sizes) == count and all(isinstance(n.type, ir.IndexType) for n in sizes),
        lambda: f"through the layout '{layout}' without values for its sizes {names}",
        "pass them behind the indices, or give the symbols values: legoc --set NAME=N",
    )
    c.require(
        len(indices) == layout.rank,
        lambda: (
            f"has {len(indices)} tiles of indices, its layout '{layout}' {layout.rank} dimensions"
        ),
    )
    for tile in indices:
        c.same_element(tile, ir.IntegerType.get_signless(32), "indices")
        c.same_shape(tile, shape, "indices")


def _gather(c: Checked) -> None:
    buffer, *indices = list(c.op.operands)
    c.same_element(c.op.results[0], ir.MemRefType(buffer.type).element_type, "a result")
    _indices(c, indices, c.shape(c.op.results[0]))


def _scatter(c: Checked) -> None:
    value, buffer, *indices = list(c.op.operands)
    element = ir.MemRefType(buffer.type).element_type
    c.same_element(value, element, "a tile")
    _indices(c, indices, c.shape(value))
    _stored(c)
    if dialect.KIND in c.op.attributes:
        kind = c.attribute(dialect.KIND, ir.StringAttr, '"add"').value
        wrong = atomics.why_not_atomic(kind, element)
        if wrong is not None:
            c.fail(f"that updates memory: {wrong[0]}", wrong[1])


# Tiles out of none.
def _full(c: Checked) -> None:
    c.same_element(c.op.operands[0], c.element(c.op.results[0]), "a number")


def _item(c: Checked) -> None:
    shape = c.shape(c.op.operands[0])
    c.require(
        prod(shape) == 1,
        lambda: f"takes a tile of one element, not {list(shape)}",
        "reduce every dimension first",
    )
    c.same_element(c.op.results[0], c.element(c.op.operands[0]), "a result")


def _vote(c: Checked) -> None:
    c.same_element(c.op.operands[0], ir.IntegerType.get_signless(1), "a tile")


def _iota(c: Checked) -> None:
    c.same_element(c.op.results[0], ir.IntegerType.get_signless(32), "a result")
    c.dim(len(c.shape(c.op.results[0])))


def _in_range(c: Checked) -> None:
    c.same_element(c.op.results[0], ir.IntegerType.get_signless(1), "a result")
    c.dim(len(c.shape(c.op.results[0])))
    c.attribute(tiles.SIZE, ir.IntegerAttr, "1000 : i64")


def _restrict(c: Checked) -> None:
    tile, mask = c.op.operands
    c.same_element(mask, ir.IntegerType.get_signless(1), "a mask")
    c.same_shape(mask, c.shape(tile), "a mask")
    _like(c, tile)


def _fill(c: Checked) -> None:
    tile = c.op.operands[0]
    element, value = c.element(tile), c.op.attributes[tiles.VALUE]
    is_number = isinstance(value, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr)
    c.require(
        is_number and value.type == element,
        lambda: f"has value = {value}, and elements of {element}",
        f"write its type along: value = 0 : {element}",
    )
    _like(c, tile)


def _like(c: Checked, tile: Any) -> None:
    """Require that all results are as a tile."""
    for result in c.op.results:
        c.same_element(result, c.element(tile), "a result")
        c.same_shape(result, c.shape(tile), "a result")


# Views.
def _broadcast(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    c.same_element(result, c.element(tile), "a result")
    small, large = c.shape(tile), c.shape(result)
    fits = len(small) == len(large) and all(n in (1, m) for n, m in zip(small, large, strict=True))
    c.require(
        fits,
        lambda: f"of a tile {list(small)} to {list(large)}",
        "both have as many dimensions; those that differ have size 1: lego.reshape adds some",
    )


def _reshape(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    c.same_element(result, c.element(tile), "a result")
    before, after = c.shape(tile), c.shape(result)
    c.require(
        prod(before) == prod(after),
        lambda: f"of {prod(before)} elements, {list(before)}, to {prod(after)}, {list(after)}",
    )


def _transpose(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    shape = c.shape(tile)
    order = list(c.attribute(tiles.ORDER, ir.DenseI64ArrayAttr, "array<i64: 1, 0>"))
    c.require(
        sorted(order) == list(range(len(shape))),
        lambda: f"has the order {order}, which is none of the dimensions of a tile {list(shape)}",
    )
    c.same_element(result, c.element(tile), "a result")
    c.same_shape(result, tuple(shape[d] for d in order), "a result")


def _join(c: Checked) -> None:
    parts, result = list(c.op.operands), c.op.results[0]
    c.require(bool(parts), lambda: "of no tiles")
    for part in parts:
        c.same_element(part, c.element(result), "a tile")
        c.same_shape(part, c.shape(parts[0]), "a tile")
    c.same_shape(result, (*c.shape(parts[0]), len(parts)), "a result")


def _split(c: Checked) -> None:
    tile, parts = c.op.operands[0], list(c.op.results)
    shape = c.shape(tile)
    c.require(
        len(shape) > 1 and shape[-1] == len(parts),
        lambda: f"of a tile {list(shape)} has {len(parts)} results",
        "it has one for each element of the last of at least two dimensions",
    )
    for part in parts:
        c.same_element(part, c.element(tile), "a result")
        c.same_shape(part, shape[:-1], "a result")


def _convert(c: Checked) -> None:
    _like(c, c.op.operands[0])


def _take(c: Checked) -> None:
    tile, indices = c.op.operands
    result = c.op.results[0]
    shape, taken = c.shape(tile), c.shape(indices)
    dim = c.dim(len(shape))
    c.same_element(indices, ir.IntegerType.get_signless(32), "indices")
    c.same_element(result, c.element(tile), "a result")
    c.same_shape(result, taken, "a result")
    fits = len(taken) == len(shape) and all(
        n == m or d == dim for d, (n, m) in enumerate(zip(shape, taken, strict=True))
    )
    c.require(
        fits,
        lambda: f"along dimension {dim} of a tile {list(shape)} has indices {list(taken)}",
        "the other dimensions are of the same size",
    )


# Combinations.
def _kind(c: Checked) -> None:
    kind = c.attribute(tiles.KIND, ir.StringAttr, '"add"').value
    element = c.element(c.op.operands[0])
    kinds: tuple[str, ...] = tiles.KINDS
    if isinstance(element, ir.FloatType):
        kinds = _FLOAT_KINDS
    elif element == ir.IntegerType.get_signless(1):
        kinds = _BOOL_KINDS
    c.require(
        kind in kinds,
        lambda: f"has the kind '{kind}', and elements of {element}",
        f"of {element} there are: {', '.join(kinds)}",
    )


def _reduce(c: Checked) -> None:
    _kind(c)
    _check_reduced(c, [c.op.operands[0]], list(c.op.results))


def _check_reduced(c: Checked, parts: Sequence[Any], results: Sequence[Any]) -> None:
    """Check that results are as tiles, with size 1 in the dimension of the operation."""
    shape = c.shape(parts[0])
    dim = c.dim(len(shape))
    c.require(
        len(parts) == len(results), lambda: f"of {len(parts)} tiles has {len(results)} results"
    )
    for part, result in zip(parts, results, strict=True):
        c.same_shape(part, shape, "a tile")
        c.same_element(result, c.element(part), "a result")
        c.same_shape(result, (*shape[:dim], 1, *shape[dim + 1 :]), "a result")


def _reduce_with(c: Checked) -> None:
    parts = list(c.op.operands)
    _check_reduced(c, parts, list(c.op.results))
    check_function(c, [c.element(part) for part in parts])


def _scan(c: Checked) -> None:
    _kind(c)
    c.dim(len(c.shape(c.op.operands[0])))
    _like(c, c.op.operands[0])
    _check_reverse(c)


def _check_reverse(c: Checked) -> None:
    if tiles.REVERSE in c.op.attributes:
        c.attribute(tiles.REVERSE, ir.UnitAttr, "unit")


def _scan_with(c: Checked) -> None:
    parts, results = list(c.op.operands), list(c.op.results)
    shape = c.shape(parts[0])
    c.dim(len(shape))
    _check_reverse(c)
    c.require(
        len(parts) == len(results), lambda: f"of {len(parts)} tiles has {len(results)} results"
    )
    for part, result in zip(parts, results, strict=True):
        c.same_shape(part, shape, "a tile")
        c.same_shape(result, shape, "a result")
        c.same_element(result, c.element(part), "a result")
    check_function(c, [c.element(part) for part in parts])


def _sort_with(c: Checked) -> None:
    parts, results = list(c.op.operands), list(c.op.results)
    shape = c.shape(parts[0])
    c.dim(len(shape))
    c.require(
        len(parts) == len(results), lambda: f"of {len(parts)} tiles has {len(results)} results"
    )
    for part, result in zip(parts, results, strict=True):
        c.same_shape(part, shape, "a tile")
        c.same_shape(result, shape, "a result")
        c.same_element(result, c.element(part), "a result")
    check_function(c, [c.element(part) for part in parts], [ir.IntegerType.get_signless(1)])


def _extract_slice(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    offsets = list(c.attribute(tiles.OFFSETS, ir.DenseI64ArrayAttr, "array<i64: 0, 16>"))
    of, shape = c.shape(tile), c.shape(result)
    c.same_element(result, c.element(tile), "a result")
    c.require(
        len(offsets) == len(of) == len(shape)
        and all(x >= 0 and x + n <= m for x, n, m in zip(offsets, shape, of, strict=True)),
        lambda: f"of {list(shape)} from {offsets} on, out of a tile {list(of)}",
        "the slice is inside of the tile",
    )
    c.require(
        not is_shared_tile(result),
        lambda: "in shared memory",
        "slices of tiles in shared memory are loaded to registers",
    )
    before, after = (None if is_shared_tile(x) else layout_of(x) for x in (tile, result))
    c.require(
        before is None or after is None or slice_registers(before, after, offsets) is not None,
        lambda: f"from the layout '{before}' to '{after}'",
        "each thread holds the elements of the slice that it gets, in registers",
    )


_ACCUMULATORS = {
    "f16": ("f16", "f32"),
    "bf16": ("f32",),
    "f32": ("f32",),
    "f64": ("f64",),
    "i8": ("i32",),
    "f8E4M3FN": ("f16", "f32"),
    "f8E5M2": ("f16", "f32"),
}
"""The element types of accumulators, by those of the operands."""


def check_dot(c: Checked) -> None:
    """Check shapes and element types of a dot.

    Raises:
        LegoError: they do not belong together.
    """
    a, b, accumulator = c.op.operands
    shapes = [c.shape(x) for x in (a, b, accumulator)]
    fits = all(len(s) == 2 for s in shapes) and (
        shapes[0][1] == shapes[1][0] and (shapes[0][0], shapes[1][1]) == shapes[2]
    )
    shown = ", ".join(str(list(s)) for s in shapes)
    c.require(
        fits,
        lambda: f"of tiles {shown}",
        "it takes m×k, k×n and the accumulator m×n; lego.transpose turns a tile",
    )
    element = str(c.element(a))
    c.same_element(b, c.element(a), "an operand")
    allowed = _ACCUMULATORS.get(element, ())
    c.require(
        str(c.element(accumulator)) in allowed,
        lambda: f"of {element} accumulates in {c.element(accumulator)}",
        f"it accumulates in {' or '.join(allowed)}"
        if allowed
        else f"dots are of {', '.join(_ACCUMULATORS)}",
    )
    _like(c, accumulator)


SHAPES: Mapping[str, Callable[[Checked], None]] = {
    dialect.LOAD: _load,
    dialect.STORE: _store,
    tiles.GATHER: _gather,
    tiles.SCATTER: _scatter,
    tiles.FULL: _full,
    tiles.ITEM: _item,
    tiles.VOTE: _vote,
    tiles.IOTA: _iota,
    tiles.IN_RANGE: _in_range,
    tiles.RESTRICT: _restrict,
    tiles.FILL: _fill,
    tiles.BROADCAST: _broadcast,
    tiles.RESHAPE: _reshape,
    tiles.TRANSPOSE: _transpose,
    tiles.JOIN: _join,
    tiles.SPLIT: _split,
    tiles.CONVERT: _convert,
    tiles.TAKE: _take,
    tiles.EXTRACT_SLICE: _extract_slice,
    tiles.REDUCE: _reduce,
    tiles.REDUCE_WITH: _reduce_with,
    tiles.SCAN: _scan,
    tiles.SCAN_WITH: _scan_with,
    tiles.SORT_WITH: _sort_with,
    tiles.DOT: check_dot,
}
"""By the operation's name."""
