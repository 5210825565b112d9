"""Loads and stores of tiles through layouts: reading them, and making new ones.

A tile is the operand of a `lego.load` or `lego.store` with a `slice`: all elements of the layout's
whole dimensions, at one index of the others. Until a schedule distributes it over threads, it is a
value of the CTA, which all threads hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.slices import Slice
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.layouts import layout_attribute, symbols_of
from lego_mlir.mlir.lowering.access_checks import SLICE, WITHIN, whole_dimensions
from lego_mlir.mlir.schedule.transform_step import PassContext

Index: TypeAlias = Any
"""An index value, or a Python int, which becomes a constant where it is used."""

Sizes: TypeAlias = tuple[tuple[str, Any], ...]
"""Index values for the symbolic sizes of a layout, by name."""

WORKGROUP = "#gpu.address_space<workgroup>"
SHARED = "shared"
"""The attribute of a tile's load or store: its shared-memory layout."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A lego.load or lego.store of a tile.

    Attributes:
        op: the operation.
        layout: the layout of the memory.
        buffer: the memory.
        index: one value for each dimension of the layout, `None` for a whole dimension.
        sizes: the values of the layout's symbolic sizes, by name.
        rows: the first and last row, exclusive, that a store may write; `None` for all.
    """

    op: Any
    layout: Layout
    buffer: Any
    index: tuple[Any, ...]
    sizes: Sizes = ()
    rows: tuple[Any, Any] | None = None

    @property
    def whole(self) -> tuple[int, ...]:
        """The whole dimensions."""
        return tuple(k for k, i in enumerate(self.index) if i is None)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the whole dimensions."""
        return cast("tuple[int, ...]", tuple(self.layout.dims[k] for k in self.whole))

    @property
    def element(self) -> Any:
        """The element type."""
        return ir.MemRefType(self.buffer.type).element_type

    @property
    def is_shared(self) -> bool:
        """Whether it is in shared memory."""
        return str(ir.MemRefType(self.buffer.type).memory_space) == WORKGROUP

    @property
    def is_load(self) -> bool:
        """Whether it is a load, not a store."""
        return bool(self.op.name == "lego.load")

    @property
    def value(self) -> Any:
        """The value that is loaded or stored."""
        return self.op.results[0] if self.is_load else self.op.operands[0]

    def row(self, index: Sequence[Index]) -> Any:
        """Compute the row of the tensor at an index of the tile's layout."""
        view = self.layout.view
        assert view is not None
        rank = len(view.tiles[0])
        levels = [sizes[0] for sizes in view.tiles]
        return apply(OrderBy(Row(*levels)), [index[k * rank] for k in range(len(levels))])

    def is_within(self, first: Any, last: Any) -> Any:
        """Compute whether the store may write the rows from `first` to `last`."""
        assert self.rows is not None
        lower, upper = self.rows
        begins = arith.CmpIOp(arith.CmpIPredicate.sle, lower, first).result
        ends = arith.CmpIOp(arith.CmpIPredicate.slt, last, upper).result
        return arith.AndIOp(begins, ends).result

    def piece(self) -> Slice:
        """Return the slice of the layout at index 0."""
        return self.layout[tuple(slice(None) if i is None else 0 for i in self.index)]


def tile_of(op: Any, pass_context: PassContext) -> Tile:
    """Return the tile of a lego.load or lego.store; a single element has no whole dimensions.

    Raises:
        LegoError: the operands do not fit its layout, or a whole dimension has a symbolic size.
    """
    layout = pass_context.layouts(op.attributes["layout"], op.location)
    whole = whole_dimensions(op, layout, pass_context.source)
    start = 1 if op.name == "lego.load" else 2
    given = list(op.operands)[start:]
    known = symbols_of(layout, op.attributes["layout"])
    rows = None
    if WITHIN in op.attributes:
        *given, lower, upper = given
        rows = lower, upper
    count = layout.rank - len(whole)
    if len(given) != count + len(known):
        raise pass_context.source.error(
            f"'{op.name}' got {len(given)} indices, its layout '{layout}' takes {count}"
            + f", and {len(known)} sizes" * bool(known),
            op.location,
        )
    if not all(isinstance(layout.dims[k], int) for k in whole):
        names = ", ".join(s.name for s in known)
        raise pass_context.source.error(
            f"a schedule needs tiles of constant sizes, the layout '{layout}' has {names}",
            op.location,
            hint="give the sizes values in lego.sizes, or by --set",
        )
    values = iter(given)
    index = tuple(None if k in whole else next(values) for k in range(layout.rank))
    sizes = tuple((s.name, value) for s, value in zip(known, values, strict=True))
    return Tile(op, layout, op.operands[start - 1], index, sizes, rows)


# Builders, at the current insertion point and location.
def constant(n: int) -> Any:
    """Make an index constant."""
    return number(n, ir.IndexType.get())


def number(n: int, kind: Any) -> Any:
    """Make a constant of an integer type, or of index."""
    # Without the bindings' class, which takes longer than everything else here.
    attributes = {"value": ir.IntegerAttr.get(kind, n)}
    return ir.Operation.create("arith.constant", results=[kind], attributes=attributes).results[0]


def load(layout: Layout, buffer: Any, index: Sequence[Index | None], known: Sizes = ()) -> Any:
    """Make a lego.load of an element, or of the tile of the dimensions whose index is `None`."""
    element = ir.MemRefType(buffer.type).element_type
    sizes = [layout.dims[k] for k, i in enumerate(index) if i is None]
    kind = ir.VectorType.get(sizes, element) if sizes else element
    operands = [buffer, *_values(index)]
    (value,) = _create("lego.load", [kind], operands, layout, index, known)
    return value


def store(
    value: Any, layout: Layout, buffer: Any, index: Sequence[Index | None], known: Sizes = ()
) -> Any:
    """Make a lego.store of an element, or of the tile of the dimensions whose index is `None`."""
    attributes = _attributes(layout, index)
    operands = [value, buffer, *_values(index), *_in_order(layout, attributes, known)]
    return ir.Operation.create("lego.store", operands=operands, attributes=attributes)


def apply(layout: Layout, index: Sequence[Index], known: Sizes = ()) -> Any:
    """Compute the flat offset of an index, by a lego.apply if needed."""
    at = offset(layout, index, known)
    return constant(at) if isinstance(at, int) else at


def offset(layout: Layout, index: Sequence[Index], known: Sizes = ()) -> Index:
    """Compute the flat offset of an index, as an int if the index is constant."""
    if not known and all(isinstance(i, int) for i in index):
        return int(layout.apply(*index))
    if layout.rank == 1 and layout == OrderBy(Row(layout.dims[0])):
        return index[0]
    kinds = [ir.IndexType.get()]
    return _create("lego.apply", kinds, _values(index), layout, known=known)[0]


def mask(layout: Layout, index: Sequence[Index], known: Sizes = ()) -> Any:
    """Make a lego.mask: whether the element exists."""
    kinds = [ir.IntegerType.get_signless(1)]
    return _create("lego.mask", kinds, _values(index), layout, known=known)[0]


def inv(layout: Layout, flat: Index) -> list[Any]:
    """Make a lego.inv: the index at a flat offset."""
    return _create("lego.inv", [ir.IndexType.get()] * layout.rank, _values([flat]), layout)


def alloc(layout: Layout, element: Any) -> Any:
    """Make a lego.alloc of shared memory."""
    space = ir.Attribute.parse(WORKGROUP)
    kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element, memory_space=space)
    return _create("lego.alloc", [kind], [], layout)[0]


def _create(
    name: str,
    results: list[Any],
    operands: list[Any],
    layout: Layout,
    index: Sequence[Index | None] = (),
    known: Sizes = (),
) -> list[Any]:
    attributes = _attributes(layout, index)
    op = ir.Operation.create(
        name,
        results=results,
        operands=[*operands, *_in_order(layout, attributes, known)],
        attributes=attributes,
    )
    return list(op.results)


def _in_order(layout: Layout, attributes: dict[str, Any], known: Sizes) -> list[Any]:
    """Return the values of a layout's symbols, in the operation's order."""
    values = dict(known)
    return [values[s.name] for s in symbols_of(layout, attributes["layout"])]


def _attributes(layout: Layout, index: Sequence[Index | None]) -> dict[str, Any]:
    attributes = {"layout": layout_attribute(layout)}
    whole = [k for k, i in enumerate(index) if i is None]
    if whole:
        attributes[SLICE] = ir.DenseI64ArrayAttr.get(whole)
    return attributes


def _values(index: Sequence[Index | None]) -> list[Any]:
    return [constant(i) if isinstance(i, int) else i for i in index if i is not None]
