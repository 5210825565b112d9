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
from lego_mlir.mlir.access_checks import SLICE, whole_dimensions
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.transforms.operation import Setting

Index: TypeAlias = Any
"""An index value, or a Python int, which becomes a constant where it is used."""

WORKGROUP = "#gpu.address_space<workgroup>"
SHARED = "shared"
"""The attribute of a tile's load or store: the layout of its copy in shared memory."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A lego.load or lego.store of a tile.

    Attributes:
        op: the operation.
        layout: of the memory it is in.
        buffer: the memory.
        index: one value for each dimension of the layout; `None` where it is whole.
    """

    op: Any
    layout: Layout
    buffer: Any
    index: tuple[Any, ...]

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
        return bool(self.op.name == "lego.load")

    @property
    def value(self) -> Any:
        """What is read or written."""
        return self.op.results[0] if self.is_load else self.op.operands[0]

    def piece(self) -> Slice:
        """The slice of the layout, its index symbols of no further meaning."""
        return self.layout[tuple(slice(None) if i is None else 0 for i in self.index)]


def tile_of(op: Any, setting: Setting) -> Tile:
    """What a lego.load or lego.store accesses; of a single element nothing is whole.

    Raises:
        LegoError: its layout has symbols without a value, or the operands do not fit it.
    """
    layout = setting.layouts(op.attributes["layout"], op.location)
    whole = whole_dimensions(op, layout, setting.source)
    start = 1 if op.name == "lego.load" else 2
    given = list(op.operands)[start:]
    if layout.symbols or len(given) != layout.rank - len(whole):
        names = ", ".join(s.name for s in layout.symbols)
        raise setting.source.error(
            f"a schedule needs sizes that are numbers, the layout '{layout}' has {names}"
            if names
            else f"'{op.name}' got {len(given)} indices, its layout '{layout}' takes "
            f"{layout.rank - len(whole)}",
            op.location,
            hint="give the sizes values in lego.sizes, or by --set" if names else None,
        )
    values = iter(given)
    index = tuple(None if k in whole else next(values) for k in range(layout.rank))
    return Tile(op, layout, op.operands[start - 1], index)


# Making operations, at the insertion point and location that are current.
def constant(n: int) -> Any:
    """An index constant."""
    return number(n, ir.IndexType.get())


def number(n: int, kind: Any) -> Any:
    """A constant of an integer type, or of index."""
    # Without the bindings' class, which takes longer than all else that is done here.
    attributes = {"value": ir.IntegerAttr.get(kind, n)}
    return ir.Operation.create("arith.constant", results=[kind], attributes=attributes).results[0]


def load(layout: Layout, buffer: Any, index: Sequence[Index | None]) -> Any:
    """A lego.load: an element, or the tile of the dimensions whose index is `None`."""
    element = ir.MemRefType(buffer.type).element_type
    sizes = [layout.dims[k] for k, i in enumerate(index) if i is None]
    kind = ir.VectorType.get(sizes, element) if sizes else element
    (value,) = _create("lego.load", [kind], [buffer, *_values(index)], layout, index)
    return value


def store(value: Any, layout: Layout, buffer: Any, index: Sequence[Index | None]) -> Any:
    """A lego.store: of an element, or of the tile of the dimensions whose index is `None`."""
    operands = [value, buffer, *_values(index)]
    attributes = _attributes(layout, index)
    return ir.Operation.create("lego.store", operands=operands, attributes=attributes)


def apply(layout: Layout, index: Sequence[Index]) -> Any:
    """The flat offset: a lego.apply, where it is not plain without."""
    at = offset(layout, index)
    return constant(at) if isinstance(at, int) else at


def offset(layout: Layout, index: Sequence[Index]) -> Index:
    """The same, an int where the index is."""
    if all(isinstance(i, int) for i in index):
        return int(layout.apply(*index))
    if layout.rank == 1 and layout == OrderBy(Row(layout.dims[0])):
        return index[0]
    return _create("lego.apply", [ir.IndexType.get()], _values(index), layout)[0]


def mask(layout: Layout, index: Sequence[Index]) -> Any:
    """A lego.mask: whether there is an element."""
    return _create("lego.mask", [ir.IntegerType.get_signless(1)], _values(index), layout)[0]


def inv(layout: Layout, flat: Index) -> list[Any]:
    """A lego.inv: the index at a flat offset."""
    return _create("lego.inv", [ir.IndexType.get()] * layout.rank, _values([flat]), layout)


def alloc(layout: Layout, element: Any) -> Any:
    """A lego.alloc of shared memory."""
    space = ir.Attribute.parse(WORKGROUP)
    kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element, memory_space=space)
    return _create("lego.alloc", [kind], [], layout)[0]


def _create(
    name: str,
    results: list[Any],
    operands: list[Any],
    layout: Layout,
    index: Sequence[Index | None] = (),
) -> list[Any]:
    op = ir.Operation.create(
        name, results=results, operands=operands, attributes=_attributes(layout, index)
    )
    return list(op.results)


def _attributes(layout: Layout, index: Sequence[Index | None]) -> dict[str, Any]:
    attributes = {"layout": layout_attribute(layout)}
    whole = [k for k, i in enumerate(index) if i is None]
    if whole:
        attributes[SLICE] = ir.DenseI64ArrayAttr.get(whole)
    return attributes


def _values(index: Sequence[Index | None]) -> list[Any]:
    return [constant(i) if isinstance(i, int) else i for i in index if i is not None]
