"""The tensor maps of a kernel's tiles: values that the host encodes before the launch, each once.

    %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}

is a tile of one tensor, and has one map:

    %map = "lego.tensor_map"(%a) {box = array<i64: 64, 128>, swizzle = 128 : i64, ...}

If only the launch knows the tensor's sizes, it evaluates those of the map:

    %x = "lego.load"(%a, %m, %k, %M) {layout = #A, slice = array<i64: 2, 3>}
    %map = "lego.tensor_map"(%a) {shape = [64, "a0.d0"], strides = array<i64: 128>, ...}

A tile of one of several tensors, which the kernel picks,

    %t = "lego.pick"(%which, %a, %b)
    %M = "lego.table"(%which) {values = array<i64: 512, 64>}
    %x = "lego.load"(%t, %m, %k, %M) {layout = #A, slice = array<i64: 2, 3>}

has a map for each. They are consecutive in one parameter of the kernel:

    %maps = "lego.tensor_maps"(%map_of_a, %map_of_b)
    %map = llvm.getelementptr %maps[%which]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.instructions.tma_boxes import L2_PROMOTION, TensorMapBoxes, tensor_map_boxes
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.launch_sizes.tensor_map_sizes import KnownSizes, known_sizes
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.buffers import sources_of
from lego_mlir.mlir.lowering.lower_tables import checked_table_values
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, apply
from lego_mlir.mlir.tiles.pointers import element_bytes, i32_constant, tensor_map_at


@dataclass(frozen=True, slots=True)
class TileTensorMaps:
    """The tensor maps of a tile.

    Attributes:
        shape: the boxes of the tile, which are the same for all its possible tensors.
        layouts: the layouts of these tensors.
        value: the map, or the first of them.
        number: the number of the tensor; `None` if there is one.
    """

    shape: TensorMapBoxes
    layouts: tuple[Layout, ...]
    value: Any
    number: Any

    def pointer(self) -> Any:
        """Compute the address of the tile's map at the current insertion point."""
        return self.value if self.number is None else tensor_map_at(self.value, self.number)


class TensorMaps:
    """The tensor maps of one launch, each made once.

    Args:
        step: the transform step, for errors.
        launch: the launch before which they are made.
        l2_promotion: bytes that reads bring into the L2 cache at least; 0 for `L2_PROMOTION`.
    """

    def __init__(self, step: TransformStep, launch: Any, l2_promotion: int = 0) -> None:
        self._step = step
        self._launch = launch
        self._l2_promotion = l2_promotion
        self._made: dict[Any, Any] = {}

    def __call__(self, tile: Tile, shared: Tile, parts: int = 1) -> TileTensorMaps:
        """Return the maps for copies between a tile and shared memory, each box in `parts` slices.

        Raises:
            LegoError: TMA cannot copy the tile.
        """
        number, tensors = self._tensors(tile)
        found = [self._map(tensor, shared, parts) for tensor in tensors]
        shape = found[0]
        require_alignment(shared, shape.alignment)
        boxes = {(one.dims, one.box, one.swizzle, one.boxes) for one in found}
        if len(boxes) > 1:
            raise self._step.error(
                "the tensors that lego.pick picks from need different TMA boxes", tile.op
            )
        values = [self._made_of(*pair) for pair in zip(tensors, found, strict=True)]
        layouts = tuple(tensor.layout for tensor in tensors)
        value = values[0] if number is None else self._joined(values, tile)
        return TileTensorMaps(shape, layouts, value, number)

    def _tensors(self, tile: Tile) -> tuple[Any, list[Tile]]:
        """Return the number of a tile's tensor, and the tile in each possible tensor."""
        owner = None if isinstance(tile.buffer, ir.BlockArgument) else tile.buffer.owner.operation
        if owner is None or owner.name != dialect.PICK:
            return None, [tile]
        number, *buffers = list(owner.operands)
        known = [self._numbers(tile, name, value, number) for name, value in tile.sizes]
        tensors = []
        for k, buffer in enumerate(buffers):
            (argument,) = sources_of(buffer)
            layout = tile.layout.bind(**{name: values[k] for name, values in known})
            tensors.append(replace(tile, layout=layout, buffer=argument, sizes=()))
        return number, tensors

    def _numbers(
        self, tile: Tile, name: str, value: Any, number: Any
    ) -> tuple[str, tuple[int, ...]]:
        """Return the value of a layout's symbolic size for each tensor."""
        op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
        if op is None or op.name != dialect.TABLE or op.operands[0] != number:
            raise self._step.error(
                f"TMA needs tensors of constant sizes, but {name} of '{tile.layout}' is from no "
                "table",
                tile.op,
                hint='a "lego.table" at the number of the tensor that "lego.pick" picks',
            )
        return name, checked_table_values(op, self._step.pass_context.source)

    def _map(self, tile: Tile, shared: Tile, parts: int) -> TensorMapBoxes:
        try:
            return tensor_map_boxes(tile.layout, shared.piece(), element_bytes(tile.element), parts)
        except LegoError as e:
            raise self._step.error(e.message, tile.op, e.hint) from None

    def _made_of(self, tile: Tile, found: TensorMapBoxes) -> Any:
        shape, strides = (
            known_sizes(sizes, self._step.pass_context.source, tile.op, dict(tile.sizes))
            for sizes in (found.shape, found.strides)
        )
        key = (tile.buffer, found.dims, shape, strides, found.box, found.swizzle)
        if key not in self._made:
            self._made[key] = self._make(tile, found, shape, strides)
        return self._made[key]

    def _joined(self, maps: list[Any], tile: Tile) -> Any:
        """Return several maps as one parameter."""
        key = tuple(maps)
        if key not in self._made:
            with ir.InsertionPoint(self._launch), tile.op.location:
                self._made[key] = dialect.tensor_maps(maps)
        return self._made[key]

    def _make(
        self, tile: Tile, found: TensorMapBoxes, shape: KnownSizes, strides: KnownSizes
    ) -> Any:
        layout = layout_attribute(tile.layout)
        with ir.InsertionPoint(self._launch), tile.op.location:
            return dialect.tensor_map(
                tile.buffer,
                layout,
                shape,
                strides,
                found.box,
                found.swizzle,
                self._l2_promotion or L2_PROMOTION,
            )


def require_alignment(shared: Tile, alignment: int) -> None:
    """Require a tile's buffer to begin at a multiple of `alignment` bytes."""
    allocation = shared.buffer.owner
    i64 = ir.IntegerType.get_signless(64)
    known = allocation.attributes
    before = ir.IntegerAttr(known[dialect.ALIGNMENT]).value if dialect.ALIGNMENT in known else 1
    known[dialect.ALIGNMENT] = ir.IntegerAttr.get(i64, max(before, alignment))


_MOST_OFFSETS = (1 << 31) - 1
"""Coordinates of a tensor map are signed, of 32 bits (PTX ISA 9.7.9.27, cp.async.bulk.tensor)."""


class TileCoordinates:
    """The coordinates of tiles in their tensors.

    Common terms are computed once, at the insertion point of the first tile.
    """

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def __call__(self, tile: Tile, maps: TileTensorMaps) -> list[Coordinate]:
        """Compute a tile's coordinates, one for each dimension of its tensor, innermost first.

        Args:
            tile: the tile.
            maps: its tensor maps.
        """
        views = [_inner_levels(layout) for layout in maps.layouts]
        rank = len(views[0][0])
        coordinates = []
        for dim in maps.shape.dims:
            sizes = [max(view[level][dim] for view in views) for level in range(len(views[0]))]
            # TMA fills in zeros for a tile that begins beyond the end, as the last one of a split K
            # may, so the number of tiles is no bound: a row-major order needs it for nothing else.
            row = OrderBy(Row(_MOST_OFFSETS // prod(sizes), *sizes))
            index = [tile.index[level * rank + dim] for level in range(1 + len(sizes))]
            known = [i if isinstance(i, int) else 0 for i in index]
            rest = tuple(0 if i is None or isinstance(i, int) else i for i in index)
            coordinates.append(Coordinate(self._of(row, rest), int(row.apply(*known))))
        return coordinates

    def _of(self, row: Layout, index: tuple[Any, ...]) -> Any:
        """Compute the offset in a row-major order, an i32; `None` for offset 0."""
        if all(isinstance(i, int) for i in index):
            return None
        if (row, index) not in self._made:
            i32 = ir.IntegerType.get_signless(32)
            self._made[row, index] = arith.IndexCastOp(i32, apply(row, index)).result
        return self._made[row, index]


class Coordinate(NamedTuple):
    """A coordinate: a constant, plus an i32 unless that is `None`."""

    value: Any
    number: int

    def plus(self, distance: Any) -> Any:
        """Return the coordinate plus a distance, an int or an i32."""
        if isinstance(distance, int):
            return add_i32(self.value, self.number + distance)
        return add_i32(add_i32(self.value, self.number), distance)


def add_i32(value: Any, other: Any) -> Any:
    """Add an i32, or `None` for 0, and an i32 or int."""
    if isinstance(other, int):
        if value is None:
            return i32_constant(other)
        if other == 0:
            return value
        other = i32_constant(other)
    return arith.AddIOp(value, other).result


def _inner_levels(layout: Layout) -> list[tuple[int, ...]]:
    """Return the sizes of a tiled tensor, level by level, without its numbers of tiles."""
    assert layout.view is not None
    return [tuple(int(n) for n in sizes) for sizes in layout.view.tiles[1:]]
