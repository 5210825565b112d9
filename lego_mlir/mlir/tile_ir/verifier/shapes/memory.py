"""Accesses of memory: tiles and elements through a layout, and elements at tiles of indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.access_checks import check_attributes
from lego_mlir.mlir.lowering.bijectivity import check_stored
from lego_mlir.mlir.tile_ir.types import is_register_tile
from lego_mlir.mlir.tile_ir.verifier.checked import Checked


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
    check_attributes(c.op, c.source)
    c.require(
        dialect.STREAMED not in c.op.attributes,
        lambda: f"in a kernel on tiles has the attribute '{dialect.STREAMED}'",
        "leave it out: in a kernel on tiles the compiler chooses the loads",
    )
    buffer, *origin = list(c.op.operands)
    check_access(c, c.op.results[0].type, buffer, origin)


def _store(c: Checked) -> None:
    check_attributes(c.op, c.source)
    value, buffer, *origin = list(c.op.operands)
    check_access(c, value.type, buffer, origin)
    _stored(c)
    _updating(c, ir.MemRefType(buffer.type).element_type)
    c.require(
        dialect.KIND not in c.op.attributes or is_register_tile(value),
        lambda: f"of no tile in registers has '{dialect.KIND}'",
        "lego.atomic updates an element",
    )


def _updating(c: Checked, element: Any) -> None:
    """Check the kind of atomic updates of elements, if a store or scatter has one."""
    if dialect.KIND in c.op.attributes:
        kind = c.attribute(dialect.KIND, ir.StringAttr, '"add"').value
        wrong = atomics.why_not_atomic(kind, element)
        if wrong is not None:
            c.fail(f"that updates memory: {wrong[0]}", wrong[1])


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
    _updating(c, element)


CHECKS: Mapping[str, Callable[[Checked], None]] = {
    dialect.LOAD: _load,
    dialect.STORE: _store,
    tiles.GATHER: _gather,
    tiles.SCATTER: _scatter,
}
"""By the operation's name."""
