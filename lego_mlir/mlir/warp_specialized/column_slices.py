"""Restricting the computation on a tile to a slice of its columns.

    %r = arith.truncf %sum : vector<64x64xf32> to vector<64x64xf16>
    "lego.store"(%r, %c, %m, %n) {layout = "…TileBy([4, 4], [64, 64])", slice = array<i64: 2, 3>}

becomes, for slice %slice of two,

    %r = arith.truncf %kept : vector<64x32xf32> to vector<64x32xf16>
    "lego.store"(%r, %c, %m, %n, 0, %slice)
        {layout = "…TileBy([4, 4], [1, 2], [64, 32])", slice = array<i64: 4, 5>}

Loads and stores use the memory's own layout with its columns split.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.subdivide import subdivide
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.fragments.thread_fragment import Axes
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, load, store, tile_of
from lego_mlir.mlir.tiles.structure import is_elementwise

_COLUMNS = 1
"""The axis of a tile that is sliced."""

_KNOWN = (
    "arithmetic of arith and math, constants of one value, vector.broadcast, lego.load, lego.store"
)


class ColumnSlices:
    """The computation on one slice of a tile's columns.

    Args:
        step: the transform step, for errors and to erase operations.
        slices: the layout from (slice, column of the slice) to the tile's column.
        number: the number of the slice, an index value.
    """

    def __init__(self, step: TransformStep, slices: Layout, number: Any) -> None:
        self._step = step
        count, width = slices.dims
        assert isinstance(count, int)
        assert isinstance(width, int)
        self._sizes = count, width
        self._number = number
        self._slices: dict[Any, Any] = {}
        self._sliced: list[Any] = []

    def replace(self, tile: Any, own: Any) -> None:
        """Replace all operations that depend on a tile by operations on its slice.

        Args:
            tile: the value, of two dimensions.
            own: the operation that makes its slice, which still uses the tile.

        Raises:
            LegoError: an operation on the tile cannot be computed for a slice alone.
        """
        self._slices[tile] = own.results[0]
        replaced: list[Any] = []
        for op in [o.operation for o in own.block.operations]:
            if op == own or not any(v in self._slices for v in op.operands):
                continue
            with ir.InsertionPoint(op), op.location:
                self._follow(op)
            replaced.append(op)
        for value in (tile, *(result for op in replaced for result in op.results)):
            for use in value.uses:
                op = use.owner.operation
                if op != own and op not in replaced:  # inside a region, or in another block
                    raise self._unsupported(op)
        for op in reversed(replaced):
            self._step.erase(op)
        # Values that were combined only with the tile.
        while unused := [op for op in self._sliced if not _is_used(op)]:
            for op in unused:
                self._sliced.remove(op)
                self._step.erase(op)

    def _follow(self, op: Any) -> None:
        """Make the operation on the slice."""
        if op.name == dialect.STORE and op.operands[0] in self._slices:
            tile = tile_of(op, self._step.pass_context)
            if len(tile.whole) == 2:
                layout, index = self._sliced_index(tile, (0, 1))
                made = store(self._slices[op.operands[0]], layout, tile.buffer, index, tile.sizes)
                _keep_attributes(op, made)
                return
        elif is_elementwise(op):
            self._slices[op.results[0]] = self._elementwise(op, (0, 1))
            return
        raise self._unsupported(op)

    def _slice(self, value: Any, axes: Axes) -> Any:
        """Return the slice of a value that meets the tile, itself if it has no columns."""
        if value in self._slices:
            return self._slices[value]
        kind = ir.VectorType(value.type)
        if all(axis != _COLUMNS or n == 1 for n, axis in zip(kind.shape, axes, strict=True)):
            return value
        if isinstance(value, ir.BlockArgument):
            raise self._unsupported(value.owner.owner)
        op = value.owner.operation
        with ir.InsertionPoint(op), op.location:
            self._slices[value] = self._made_slice(op, axes)
        self._sliced.append(op.operation)
        return self._slices[value]

    def _made_slice(self, op: Any, axes: Axes) -> Any:
        kind = self._type(op.results[0], axes)
        match op.name:
            case "arith.constant":
                attribute = ir.DenseElementsAttr(op.attributes["value"])
                if attribute.is_splat:
                    splat = ir.DenseElementsAttr.get_splat(kind, attribute.get_splat_value())
                    return arith.ConstantOp(kind, splat).result
            case dialect.LOAD:
                tile = tile_of(op, self._step.pass_context)
                layout, index = self._sliced_index(tile, axes)
                found = load(layout, tile.buffer, index, tile.sizes)
                _keep_attributes(op, found.owner)
                return found
            case "vector.broadcast":
                (source,) = op.operands
                rank = len(ir.VectorType(source.type).shape) if _is_vector(source) else 0
                operand = self._slice(source, axes[len(axes) - rank :]) if rank else source
                return ir.Operation.create(op.name, results=[kind], operands=[operand]).results[0]
            case _ if is_elementwise(op):
                return self._elementwise(op, axes)
        raise self._unsupported(op)

    def _elementwise(self, op: Any, axes: Axes) -> Any:
        return ir.Operation.create(
            op.name,
            results=[self._type(op.results[0], axes)],
            operands=[self._slice(v, axes) if _is_vector(v) else v for v in op.operands],
            attributes=named_attributes(op),
        ).results[0]

    def _type(self, value: Any, axes: Axes) -> Any:
        """Return the type of a value's slice."""
        kind = ir.VectorType(value.type)
        _, width = self._sizes
        shape = [
            width if axis == _COLUMNS and n != 1 else n
            for n, axis in zip(kind.shape, axes, strict=True)
        ]
        return ir.VectorType.get(shape, kind.element_type)

    def _sliced_index(self, tile: Tile, axes: Axes) -> tuple[Layout, tuple[Any, ...]]:
        """Return the split layout of a tile's memory, and the slice's index in it."""
        axis_of = dict(zip(tile.whole, axes, strict=True))
        columns = [
            k for k, axis in axis_of.items() if axis == _COLUMNS and tile.layout.dims[k] != 1
        ]
        try:
            split = subdivide(tile.layout, dict.fromkeys(columns, self._sizes))
        except LegoError as e:
            raise self._step.error(e.message, tile.op, e.hint) from None
        entries = [(self._number, None) if k in columns else i for k, i in enumerate(tile.index)]
        return split.layout, split.index(*entries)

    def _unsupported(self, op: Any) -> Exception:
        return self._step.error(
            f"'{op.name}' cannot be computed for a slice of the columns",
            op,
            hint=f"supported operations on the accumulator: {_KNOWN}",
        )


def _keep_attributes(op: Any, made: Any) -> None:
    """Copy the attributes of an access to the one that replaces it."""
    for name, attribute in named_attributes(op).items():
        if name not in (dialect.LAYOUT, dialect.SLICE):
            made.attributes[name] = attribute


def _is_used(op: Any) -> bool:
    return any(True for result in op.results for _ in result.uses)


def _is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)
