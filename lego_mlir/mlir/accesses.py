"""Loads and stores through a layout: elements, and vectors of them.

A vector access takes a slice of the layout. It becomes as few accesses of memory as is proven:
runs of elements that lie one after another are read as one vector, the rest element by element.
Nothing is assumed of their alignment beyond that of the element.

Where tiles are partial, what may be padding is accessed under its mask; what is not there reads
as the operation's `other`, or 0.

    %v = "lego.load"(%a, %m, %n, %i) {layout = #A, slice = array<i64: 3>}

becomes, with the rows of a whole tile contiguous,

    %row = vector.load %flat[%base] : memref<4096xf32>, vector<64xf32>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import prod
from typing import Any, TypeAlias, cast

from lego_mlir.algebra import Layout
from lego_mlir.algebra.blocks import unflatten
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct, substitute
from lego_mlir.index.nodes import Spelled
from lego_mlir.index.polynomial import parts
from lego_mlir.mlir.bindings import arith, ir, memref, scf, vector
from lego_mlir.mlir.context import Source

SLICE = "slice"
OTHER = "other"

Print: TypeAlias = Callable[[Int], Any]
"""Makes the operations that compute an expression; their value."""

MOST_ELEMENTS = 1024
"""The greatest vector that is accessed: each of its elements may become an instruction."""


@dataclass(frozen=True, slots=True)
class Run:
    """Elements that are accessed at once.

    Attributes:
        start: the place of the first among the elements of the slice.
        offset: of the first in memory.
        inside: the mask, 1 where all of them exist and 0 where none does.
    """

    start: int
    offset: Int
    inside: Int


@dataclass(frozen=True, slots=True)
class Access:
    """What a lego.load or lego.store does to memory.

    Attributes:
        piece: the slice of the layout, that of no dimension for a single element.
        kind: the type of the value, of the element or a vector.
        flat: the memory, a buffer of one dimension.
        other: the attribute of what is read where there is no element; `None` for 0.
        index: prints an expression.
        condition: prints an expression's truth.
    """

    piece: Slice
    kind: Any
    flat: Any
    other: Any
    index: Print
    condition: Print
    _printed: dict[Int, tuple[int, Any]] = field(default_factory=dict)

    @property
    def element(self) -> Any:
        """The type of an element."""
        return ir.MemRefType(self.flat.type).element_type

    def place(self, offset: Int) -> Any:
        """The value of an offset; those that differ by a constant share the rest."""
        if isinstance(offset, Spelled):
            return self.index(offset)
        constant, _ = parts(offset)
        rest = construct.sub(offset, constant)
        if rest not in self._printed:
            self._printed[rest] = constant, self.index(offset)
        known, value = self._printed[rest]
        if constant == known:
            return value
        distance = arith.ConstantOp(ir.IndexType.get(), constant - known).result
        return arith.AddIOp(value, distance).result

    def runs(self) -> tuple[int, list[Run]]:
        """How many elements each run has, and the runs in order."""
        shape = cast("tuple[int, ...]", self.piece.shape)
        width = self.piece.run if shape and _takes_vectors(self.flat.type) else 1
        free = self.piece.symbols
        inside = self.piece.mask(*free)
        offset = 0 if _is_never(inside) else self.piece.offset(*free)  # derived once for all runs
        if not free:
            return width, [Run(0, offset, inside)]
        runs = []
        for start in range(0, prod(shape), width):
            at = dict(zip(free, unflatten(shape, start), strict=True))
            runs.append(Run(start, substitute(offset, at), substitute(inside, at)))
        return width, runs


def whole_dimensions(op: Any, layout: Layout, source: Source) -> tuple[int, ...]:
    """The dimensions that an operation's `slice` names, none if it has no such attribute.

    Raises:
        LegoError: it is no ascending list of dimensions of the layout.
    """
    if SLICE not in op.attributes:
        return ()
    attribute = op.attributes[SLICE]
    dims = tuple(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else ()
    ascending = dims == tuple(sorted(set(dims)))
    if not dims or not ascending or dims[0] < 0 or dims[-1] >= layout.rank:
        raise source.error(
            f"'{op.name}': slice is {attribute}, its layout '{layout}' has the dimensions 0 to "
            f"{layout.rank - 1}",
            op.location,
            hint="it lists the whole dimensions in order, such as array<i64: 2, 3>",
        )
    return dims


def check_value(op: Any, kind: Any, piece: Slice | None, element: Any, source: Source) -> None:
    """Check the type of what a load or store moves.

    Args:
        op: the load or store.
        kind: the type of its value.
        piece: the slice it takes; `None` for one element.
        element: the type of the buffer's elements.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: the type is not that of the element or slice, or the slice is too large.
    """
    if piece is None:
        if kind != element:
            vectors = isinstance(kind, ir.VectorType) and kind.element_type == element
            raise source.error(
                f"'{op.name}' of {kind} through a buffer of {element}",
                op.location,
                hint="name the dimensions that are whole: {layout = #L, slice = array<i64: 1>}"
                if vectors
                else "convert the value before it is stored or after it is loaded",
            )
        return
    sizes = sizes_text(piece.shape)
    if not all(isinstance(n, int) for n in piece.shape):
        raise source.error(
            f"'{op.name}' of a slice of sizes {sizes}: a vector has known sizes",
            op.location,
            hint="give the symbols values in lego.sizes, or access the elements one by one",
        )
    shape = cast("tuple[int, ...]", piece.shape)
    if prod(shape) > MOST_ELEMENTS:
        raise source.error(
            f"'{op.name}' of a slice of sizes {sizes}: {prod(shape)} elements are more than the "
            f"{MOST_ELEMENTS} that one access takes",
            op.location,
            hint="tile the dimension, and access one tile at a time",
        )
    expected = ir.VectorType.get(list(shape), element)
    if kind != expected:
        raise source.error(
            f"'{op.name}' of {kind} through a slice of type {expected}",
            op.location,
            hint="the vector has the sizes of the whole dimensions and the buffer's elements",
        )


def other_of(op: Any, element: Any, source: Source) -> Any:
    """What an operation reads where there is no element, if it has an `other`.

    Raises:
        LegoError: it is not of the element's type.
    """
    if OTHER not in op.attributes:
        return None
    attribute = op.attributes[OTHER]
    if getattr(attribute, "type", None) != element:
        raise source.error(
            f"'{op.name}': other is {attribute}, the buffer's elements are {element}",
            op.location,
            hint="write its type along: other = 1.0 : f32",
        )
    return attribute


def load(access: Access) -> Any:
    """Read memory: the value of the access."""
    width, runs = access.runs()
    unit = access.element if width == 1 else ir.VectorType.get([width], access.element)
    found: list[Any] = []
    for inside, group in groupby(runs, key=lambda run: run.inside):
        if _is_never(inside):
            found += [_nothing(access, unit)] * len(list(group))
            continue
        places = [access.place(run.offset) for run in group]
        found += _guarded_read(access, inside, unit, places)
    return _joined(access.kind, found, width)


def store(access: Access, value: Any) -> None:
    """Write a value to memory."""
    width, runs = access.runs()
    for inside, group in groupby(runs, key=lambda run: run.inside):
        if _is_never(inside):
            continue
        written = [(access.place(r.offset), _part(value, r.start, width)) for r in group]
        if isinstance(inside, int):
            _write(access.flat, written, width)
            continue
        guard = scf.IfOp(access.condition(inside))
        with ir.InsertionPoint(guard.then_block):
            _write(access.flat, written, width)
            scf.YieldOp([])


def _guarded_read(access: Access, inside: Int, unit: Any, places: Sequence[Any]) -> list[Any]:
    """The values at places in memory, or `other` where they are not there."""
    if isinstance(inside, int):
        return _read(access.flat, unit, places)
    guard = scf.IfOp(access.condition(inside), [unit] * len(places), has_else=True)
    with ir.InsertionPoint(guard.then_block):
        scf.YieldOp(_read(access.flat, unit, places))
    with ir.InsertionPoint(guard.else_block):
        scf.YieldOp([_nothing(access, unit)] * len(places))
    return list(guard.results)


def _read(flat: Any, unit: Any, places: Sequence[Any]) -> list[Any]:
    if unit == ir.MemRefType(flat.type).element_type:
        return [memref.LoadOp(flat, [place]).result for place in places]
    return [vector.LoadOp(unit, flat, [place]).result for place in places]


def _write(flat: Any, written: Sequence[tuple[Any, Any]], width: int) -> None:
    for place, value in written:
        if width == 1:
            memref.StoreOp(value, flat, [place])
        else:
            vector.StoreOp(value, flat, [place])


def _joined(kind: Any, found: list[Any], width: int) -> Any:
    """The value of an access from those of its runs."""
    if not isinstance(kind, ir.VectorType) or found[0].type == kind:
        return found[0]
    if width == 1:
        return vector.FromElementsOp(kind, found).result
    kind = ir.VectorType(kind)
    row = found[0]
    if len(found) > 1:
        row_type = ir.VectorType.get([width * len(found)], kind.element_type)
        row = _constant(row_type, _zero(kind.element_type))
        for k, part in enumerate(found):
            row = vector.InsertStridedSliceOp(part, row, [k * width], [1]).result
    return row if row.type == kind else vector.ShapeCastOp(kind, row).result


def _part(value: Any, start: int, width: int) -> Any:
    """A run's part of the value that is stored."""
    if not isinstance(value.type, ir.VectorType):
        return value
    kind = ir.VectorType(value.type)
    total = prod(kind.shape)
    if width == 1:
        return vector.ExtractOp(value, [], list(unflatten(tuple(kind.shape), start))).result
    row_type = ir.VectorType.get([total], kind.element_type)
    row = value if value.type == row_type else vector.ShapeCastOp(row_type, value).result
    if width == total:
        return row
    part = ir.VectorType.get([width], kind.element_type)
    return vector.ExtractStridedSliceOp(part, row, [start], [width], [1]).result


def _nothing(access: Access, kind: Any) -> Any:
    """What is read where there is no element."""
    return _constant(kind, _zero(access.element) if access.other is None else access.other)


def _constant(kind: Any, value: Any) -> Any:
    """The constant of type `kind` that is `value`, or has it in every place."""
    same = getattr(value, "type", None) == kind
    splat = value if same else ir.DenseElementsAttr.get_splat(kind, value)
    return arith.ConstantOp(kind, splat).result


def _zero(kind: Any) -> Any:
    """The attribute of a type's zero.

    Raises:
        LegoError: it is no integer, floating-point or vector type.
    """
    match kind:
        case ir.VectorType():
            return ir.DenseElementsAttr.get_splat(kind, _zero(kind.element_type))
        case ir.FloatType():
            return ir.FloatAttr.get(kind, 0.0)
        case ir.IntegerType() | ir.IndexType():
            return ir.IntegerAttr.get(kind, 0)
    raise LegoError(
        f"there is no 0 of type {kind} to stand for what is not there",
        hint="name what does: {layout = #L, other = ...}",
    )


def _takes_vectors(kind: Any) -> bool:
    """Whether neighbours of a buffer are neighbours in memory, and a vector of them is no less.

    Elements below a byte are not: alone they take one each, in a vector they are packed.
    """
    buffer = ir.MemRefType(kind)
    strides, _ = buffer.get_strides_and_offset()
    match buffer.element_type:
        case ir.IndexType():
            wide = True
        case ir.IntegerType() | ir.FloatType() as element:
            wide = element.width in (8, 16, 32, 64)
        case _:
            wide = False
    return bool(strides[-1] == 1 and wide)


def _is_never(inside: Int) -> bool:
    return isinstance(inside, int) and inside == 0
