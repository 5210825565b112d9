"""Builders of the dialect's operations and attributes.

They insert at the current insertion point. Their `location` defaults to the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect.names import (
    ALIGNMENT,
    ALLOC,
    APPLY,
    ATOMIC,
    BOUNDS,
    INV,
    KIND,
    LAYOUT,
    LOAD,
    MASK,
    PICK,
    SLICE,
    STORE,
    TABLE,
    TENSOR_MAP,
    TENSOR_MAPS,
    VALUES,
)
from lego_mlir.mlir.dialect.readers import BOX, L2_PROMOTION, SHAPE, STRIDES, SWIZZLE


# Attributes.
def bounds_attribute(bounds: Sequence[int]) -> Any:
    """Return the attribute `BOUNDS` of exclusive upper bounds, one for each result."""
    return ir.DenseI64ArrayAttr.get(list(bounds))


def access_attributes(layout: Any, whole: Sequence[int] = (), **units: bool) -> dict[str, Any]:
    """Return the attributes of a load or store.

    Args:
        layout: the attribute of the buffer's layout.
        whole: the dimensions that a tile covers; none for one element.
        units: unit attributes (`EXCLUSIVE`, `STREAMED`) that are set where they are true.
    """
    attributes = {LAYOUT: layout}
    if whole:
        attributes[SLICE] = ir.DenseI64ArrayAttr.get(list(whole))
    return attributes | {name: ir.UnitAttr.get() for name, is_set in units.items() if is_set}


# Builders.
def apply(layout: Any, operands: Sequence[Any], location: Any = None) -> Any:
    """Build a lego.apply of an index and the layout's symbols; return the offset."""
    return _build(APPLY, [_index()], operands, {LAYOUT: layout}, location).results[0]


def inv(
    layout: Any,
    rank: int,
    operands: Sequence[Any],
    bounds: Sequence[int] = (),
    location: Any = None,
) -> list[Any]:
    """Build a lego.inv of an offset and the layout's symbols; return the index.

    Args:
        layout: the layout's attribute.
        rank: the number of the layout's dimensions.
        operands: the offset, then one value for each symbol.
        bounds: exclusive upper bounds of the index, 0 where none is known.
        location: of the operation.
    """
    attributes = {LAYOUT: layout}
    if any(bounds):
        attributes[BOUNDS] = bounds_attribute(bounds)
    return list(_build(INV, [_index()] * rank, operands, attributes, location).results)


def mask(layout: Any, operands: Sequence[Any], location: Any = None) -> Any:
    """Build a lego.mask of an index and the layout's symbols; return whether an element exists."""
    i1 = ir.IntegerType.get_signless(1)
    return _build(MASK, [i1], operands, {LAYOUT: layout}, location).results[0]


def table(values: Sequence[int], position: Any, location: Any = None) -> Any:
    """Build a lego.table of `values`; return the number at `position`."""
    attributes = {VALUES: ir.DenseI64ArrayAttr.get(list(values))}
    return _build(TABLE, [_index()], [position], attributes, location).results[0]


def pick(kind: Any, number: Any, buffers: Sequence[Any], location: Any = None) -> Any:
    """Build a lego.pick of the buffer with this number; return it as one of the type `kind`."""
    return _build(PICK, [kind], [number, *buffers], {}, location).results[0]


def alloc(kind: Any, layout: Any, location: Any = None, *, alignment: int | None = None) -> Any:
    """Build a lego.alloc of a buffer of the type `kind` that holds a layout's elements.

    `alignment` is that of the buffer's address, in bytes.
    """
    attributes = {LAYOUT: layout}
    if alignment is not None:
        i64 = ir.IntegerType.get_signless(64)
        attributes[ALIGNMENT] = ir.IntegerAttr.get(i64, alignment)
    return _build(ALLOC, [kind], [], attributes, location).results[0]


def load(
    kind: Any,
    buffer: Any,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any = None,
) -> Any:
    """Build a lego.load of an element or tile of the type `kind`; return its value.

    Args:
        kind: the type of the value.
        buffer: the memory.
        operands: the index, then one value for each symbol of the layout.
        attributes: by `access_attributes`.
        location: of the operation.
    """
    return _build(LOAD, [kind], [buffer, *operands], attributes, location).results[0]


def store(
    value: Any,
    buffer: Any,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any = None,
    *,
    by: str | None = None,
) -> Any:
    """Build a lego.store of an element or tile; return the operation.

    Args:
        value: what is stored.
        buffer: the memory.
        operands: the index, then one value for each symbol of the layout.
        attributes: by `access_attributes`.
        location: of the operation.
        by: the kind of atomic updates of a tile's elements; `None` if they replace what was there.
    """
    if by is not None:
        attributes = {**attributes, KIND: ir.StringAttr.get(by)}
    return _build(STORE, [], [value, buffer, *operands], attributes, location)


def atomic(
    kind: str,
    value: Any,
    buffer: Any,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any = None,
) -> Any:
    """Build a lego.atomic that updates an element by `kind`; return the value before."""
    attributes = {**attributes, KIND: ir.StringAttr.get(kind)}
    op = _build(ATOMIC, [value.type], [value, buffer, *operands], attributes, location)
    return op.results[0]


def tensor_map(
    buffer: Any,
    layout: Any,
    shape: Sequence[int | str],
    strides: Sequence[int | str],
    box: Sequence[int],
    swizzle: int,
    l2_promotion: int,
) -> Any:
    """Build a lego.tensor_map of a tensor; return the pointer that a kernel takes.

    Args:
        buffer: the tensor.
        layout: the attribute of its layout.
        shape: sizes in elements, innermost first; a text is an expression of `artifact.expressions`
            that the launch evaluates.
        strides: in bytes, of all dimensions but the innermost; texts as in `shape`.
        box: sizes in elements of what one copy moves, innermost first.
        swizzle: bytes of the swizzle mode, 0 for none.
        l2_promotion: bytes that a read brings into the L2 cache at least, 0 for those it reads.
    """
    arrays = ((SHAPE, shape), (STRIDES, strides), (BOX, box))
    attributes = {name: _sizes(numbers) for name, numbers in arrays}
    i64 = ir.IntegerType.get_signless(64)
    for name, number in ((SWIZZLE, swizzle), (L2_PROMOTION, l2_promotion)):
        attributes[name] = ir.IntegerAttr.get(i64, number)
    attributes[LAYOUT] = layout
    return _build(TENSOR_MAP, [_pointer()], [buffer], attributes, None).results[0]


def tensor_maps(maps: Sequence[Any]) -> Any:
    """Build a lego.tensor_maps that lays tensor maps one behind the other; return the first."""
    return _build(TENSOR_MAPS, [_pointer()], maps, {}, None).results[0]


def _build(
    name: str,
    results: Sequence[Any],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any,
) -> Any:
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes, loc=location
    )


def _sizes(sizes: Sequence[int | str]) -> Any:
    """Return the attribute of sizes: an array of numbers, or of numbers and expressions."""
    if all(isinstance(n, int) for n in sizes):
        return ir.DenseI64ArrayAttr.get(list(sizes))
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.StringAttr.get(n) if isinstance(n, str) else ir.IntegerAttr.get(i64, n) for n in sizes]
    )


def _index() -> Any:
    return ir.IndexType.get()


def _pointer() -> Any:
    return ir.Type.parse("!llvm.ptr")
