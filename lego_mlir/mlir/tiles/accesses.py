"""Reads and writes of tiles through layouts: how transforms see them, and how they make new ones.

A tile is what a `lego.load` or `lego.store` with a `slice` moves: all elements of the layout's
whole dimensions, at one index of the others. Until a schedule has given it to threads, it is the
whole block's: one value that all threads of the block hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.slices import Slice
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.layouts import layout_attribute, symbols_of
from lego_mlir.mlir.lowering.access_checks import whole_dimensions
from lego_mlir.mlir.schedule.transform_step import PassContext

Index: TypeAlias = Any
"""An index value, or a Python int, which becomes a constant where it is used."""

Sizes: TypeAlias = tuple[tuple[str, Any], ...]
"""Index values for the symbolic sizes of a layout, by name."""

WORKGROUP = "#gpu.address_space<workgroup>"


@dataclass(frozen=True, slots=True)
class Tile:
    """A lego.load or lego.store of a tile.

    Attributes:
        op: the operation.
        layout: of the memory it is in.
        buffer: the memory.
        index: one value for each dimension of the layout; `None` where it is whole.
        sizes: the values of the layout's symbolic sizes, by name.
        rows: of a store what it writes of the tensor, from one row to another, exclusive; `None`
            for all of the tile.
    """

    op: Any
    layout: Layout
    buffer: Any
    index: tuple[Any, ...]
    sizes: Sizes = ()
    rows: tuple[Any, Any] | None = None

    @property
    def whole(self) -> tuple[int, ...]:
        """The dimensions that are whole."""
        return tuple(k for k, i in enumerate(self.index) if i is None)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the whole dimensions."""
        return cast("tuple[int, ...]", tuple(self.layout.dims[k] for k in self.whole))

    @property
    def element(self) -> Any:
        """The type of an element."""
        return ir.MemRefType(self.buffer.type).element_type

    @property
    def is_shared(self) -> bool:
        """Whether it lies in shared memory."""
        return str(ir.MemRefType(self.buffer.type).memory_space) == WORKGROUP

    @property
    def is_load(self) -> bool:
        """Whether it is read; else it is written."""
        return bool(self.op.name == dialect.LOAD)

    @property
    def value(self) -> Any:
        """What is read or written."""
        return self.op.results[0] if self.is_load else self.op.operands[0]

    def row(self, index: Sequence[Index]) -> Any:
        """Return the row of the tensor that an index of the tile's layout is in."""
        view = self.layout.view
        assert view is not None
        rank = len(view.tiles[0])
        levels = [sizes[0] for sizes in view.tiles]
        return apply(OrderBy(Row(*levels)), [index[k * rank] for k in range(len(levels))])

    def is_within(self, first: Any, last: Any) -> Any:
        """Return whether a store writes the tensor's rows from one to another."""
        assert self.rows is not None
        lower, upper = self.rows
        begins = arith.CmpIOp(arith.CmpIPredicate.sle, lower, first).result
        ends = arith.CmpIOp(arith.CmpIPredicate.slt, last, upper).result
        return arith.AndIOp(begins, ends).result

    def piece(self) -> Slice:
        """Return the slice of the layout, its index symbols of no further meaning."""
        return self.layout[tuple(slice(None) if i is None else 0 for i in self.index)]


def tile_of(op: Any, pass_context: PassContext) -> Tile:
    """Return what a lego.load or lego.store accesses; of a single element nothing is whole.

    Raises:
        LegoError: the operands do not fit its layout, or a whole dimension has a symbolic size.
    """
    layout = pass_context.layouts.of(op)
    whole = whole_dimensions(op, layout, pass_context.source)
    start = 1 if op.name == dialect.LOAD else 2
    index_operands = list(op.operands)[start:]
    known = symbols_of(layout, dialect.layout_attribute_of(op))
    rows = None
    if dialect.WITHIN in op.attributes:
        *index_operands, lower, upper = index_operands
        rows = lower, upper
    count = layout.rank - len(whole)
    if len(index_operands) != count + len(known):
        raise pass_context.source.error(
            f"'{op.name}' got {len(index_operands)} indices, its layout '{layout}' takes {count}"
            + f", and {len(known)} sizes" * bool(known),
            op.location,
        )
    if not all(isinstance(layout.dims[k], int) for k in whole):
        names = ", ".join(s.name for s in known)
        raise pass_context.source.error(
            f"a schedule needs tiles whose sizes are numbers, the layout '{layout}' has {names}",
            op.location,
            hint="give the sizes values in lego.sizes, or by --set",
        )
    values = iter(index_operands)
    index = tuple(None if k in whole else next(values) for k in range(layout.rank))
    sizes = tuple((s.name, value) for s, value in zip(known, values, strict=True))
    return Tile(op, layout, op.operands[start - 1], index, sizes, rows)


# Making operations, at the insertion point and location that are current.
def constant(n: int) -> Any:
    """Return an index constant."""
    return number(n, ir.IndexType.get())


def number(n: int, kind: Any) -> Any:
    """Return a constant of an integer type, or of index."""
    # Without the bindings' class, which takes longer than all else that is done here.
    attributes = {"value": ir.IntegerAttr.get(kind, n)}
    return ir.Operation.create("arith.constant", results=[kind], attributes=attributes).results[0]


def load(layout: Layout, buffer: Any, index: Sequence[Index | None], known: Sizes = ()) -> Any:
    """Build a lego.load of an element, or of the tile of the dimensions whose index is `None`."""
    element = ir.MemRefType(buffer.type).element_type
    whole = [k for k, i in enumerate(index) if i is None]
    kind = ir.VectorType.get([layout.dims[k] for k in whole], element) if whole else element
    attribute = layout_attribute(layout)
    operands = _operands(layout, attribute, index, known)
    return dialect.load(kind, buffer, operands, dialect.access_attributes(attribute, whole))


def store(
    value: Any, layout: Layout, buffer: Any, index: Sequence[Index | None], known: Sizes = ()
) -> Any:
    """Build a lego.store of an element, or of the tile of the dimensions whose index is `None`."""
    whole = [k for k, i in enumerate(index) if i is None]
    attribute = layout_attribute(layout)
    operands = _operands(layout, attribute, index, known)
    return dialect.store(value, buffer, operands, dialect.access_attributes(attribute, whole))


def apply(layout: Layout, index: Sequence[Index], known: Sizes = ()) -> Any:
    """Return the offset at an index as a value: of a lego.apply, or simpler where that is exact."""
    at = offset(layout, index, known)
    return constant(at) if isinstance(at, int) else at


def offset(layout: Layout, index: Sequence[Index], known: Sizes = ()) -> Index:
    """Return the offset at an index, as an int if the index consists of ints."""
    if not known and all(isinstance(i, int) for i in index):
        return int(layout.apply(*index))
    if layout.rank == 1 and layout == OrderBy(Row(layout.dims[0])):
        return index[0]
    attribute = layout_attribute(layout)
    return dialect.apply(attribute, _operands(layout, attribute, index, known))


def mask(layout: Layout, index: Sequence[Index], known: Sizes = ()) -> Any:
    """Build a lego.mask, which is true where there is an element at the index."""
    attribute = layout_attribute(layout)
    return dialect.mask(attribute, _operands(layout, attribute, index, known))


def inv(layout: Layout, flat: Index, known: Sizes = ()) -> list[Any]:
    """Build a lego.inv of the index at a flat offset."""
    attribute = layout_attribute(layout)
    return dialect.inv(attribute, layout.rank, _operands(layout, attribute, [flat], known))


def alloc(layout: Layout, element: Any) -> Any:
    """Build a lego.alloc of shared memory for a layout's elements."""
    space = ir.Attribute.parse(WORKGROUP)
    kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element, memory_space=space)
    return dialect.alloc(kind, layout_attribute(layout))


def _operands(
    layout: Layout, attribute: Any, index: Sequence[Index | None], known: Sizes
) -> list[Any]:
    """Return the index, then the values of the layout's symbols in the attribute's order."""
    values = dict(known)
    return [*_values(index), *(values[s.name] for s in symbols_of(layout, attribute))]


def _values(index: Sequence[Index | None]) -> list[Any]:
    return [constant(i) if isinstance(i, int) else i for i in index if i is not None]
