"""Tensor maps of a kernel's tiles: values that its launch makes, each once.

    %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}

is of one tensor, and has one map, which the host makes in front of the launch:

    %map = "lego.tensor_map"(%a) {box = array<i64: 64, 128>, swizzle = 128 : i64, ...}

A tile of one of several tensors, whose number only the kernel knows,

    %t = "lego.pick"(%which, %a, %b)
    %M = "lego.table"(%which) {values = array<i64: 512, 64>}
    %x = "lego.load"(%t, %m, %k, %M) {layout = #A, slice = array<i64: 2, 3>}

has one for each, and all of them, one behind the other, are one parameter of the kernel:

    %maps = "lego.tensor_maps"(%map_of_a, %map_of_b)
    %map = llvm.getelementptr %maps[%which]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.tma import TensorMap, tensor_map
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.buffers import ALIGNMENT, sources_of
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lower_lego import TENSOR_MAP, TENSOR_MAPS
from lego_mlir.mlir.lower_tables import PICK, TABLE, table_values
from lego_mlir.mlir.transforms.operation import Step
from lego_mlir.mlir.transforms.pointers import element_bytes, i32_constant
from lego_mlir.mlir.transforms.tiles import Tile, apply

MAP_BYTES = 128
"""Of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""

_DYNAMIC = -(1 << 31)
"""Stands among the indices of llvm.getelementptr for one that is an operand."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """The maps of a tile.

    Attributes:
        shape: how boxes lie in the tile, the same for all tensors that it may be of.
        layouts: of these tensors.
        value: the map, or the first of them.
        number: of the tensor; `None` where there is one.
    """

    shape: TensorMap
    layouts: tuple[Layout, ...]
    value: Any
    number: Any

    def pointer(self) -> Any:
        """The address of the tile's map, computed at the current insertion point."""
        if self.number is None:
            return self.value
        kind = ir.Type.parse(f"!llvm.array<{MAP_BYTES} x i8>")
        i32 = ir.IntegerType.get_signless(32)
        return ir.Operation.create(
            "llvm.getelementptr",
            results=[self.value.type],
            operands=[self.value, arith.IndexCastOp(i32, self.number).result],
            attributes={
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC]),
                "elem_type": ir.TypeAttr.get(kind),
            },
        ).result


class TensorMaps:
    """The tensor maps of one launch, each made once.

    Args:
        step: that makes them.
        launch: before which they are made.
    """

    def __init__(self, step: Step, launch: Any) -> None:
        self._step = step
        self._launch = launch
        self._made: dict[Any, Any] = {}

    def __call__(self, tile: Tile, shared: Tile, parts: int = 1) -> Mapped:
        """The maps for copies between a tile and its copy in shared memory.

        Raises:
            LegoError: at the tile's access: TMA cannot copy it.
        """
        number, members = self._members(tile)
        found = [self._map(member, shared, parts) for member in members]
        shape = found[0]
        require_alignment(shared, shape.alignment)
        boxes = {(one.dims, one.box, one.swizzle, one.boxes) for one in found}
        if len(boxes) > 1:
            raise self._step.error(
                "the tensors that the tile may be of take copies of different boxes", tile.op
            )
        values = [self._made_of(*pair) for pair in zip(members, found, strict=True)]
        layouts = tuple(member.layout for member in members)
        value = values[0] if number is None else self._joined(values, tile)
        return Mapped(shape, layouts, value, number)

    def _members(self, tile: Tile) -> tuple[Any, list[Tile]]:
        """The number of the tensor that a tile is of, and the tile as it is in each of them."""
        owner = None if isinstance(tile.buffer, ir.BlockArgument) else tile.buffer.owner.operation
        if owner is None or owner.name != PICK:
            if tile.sizes:
                raise self._step.error(
                    f"TMA takes tensors of known sizes, and '{tile.layout}' has "
                    + ", ".join(name for name, _ in tile.sizes),
                    tile.op,
                    hint="give the sizes values in lego.sizes, or by --set",
                )
            return None, [tile]
        number, *buffers = list(owner.operands)
        known = [self._numbers(tile, name, value, number) for name, value in tile.sizes]
        members = []
        for place, buffer in enumerate(buffers):
            (argument,) = sources_of(buffer)
            layout = tile.layout.bind(**{name: values[place] for name, values in known})
            members.append(replace(tile, layout=layout, buffer=argument, sizes=()))
        return number, members

    def _numbers(
        self, tile: Tile, name: str, value: Any, number: Any
    ) -> tuple[str, tuple[int, ...]]:
        """The sizes that a symbol of a tile's layout has, tensor by tensor."""
        op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
        if op is None or op.name != TABLE or op.operands[0] != number:
            raise self._step.error(
                f"TMA takes tensors of known sizes, and {name} of '{tile.layout}' is from no table",
                tile.op,
                hint='a "lego.table" at the number of the tensor that "lego.pick" picks',
            )
        return name, table_values(op, self._step.setting.source)

    def _map(self, tile: Tile, shared: Tile, parts: int) -> TensorMap:
        try:
            return tensor_map(tile.layout, shared.piece(), element_bytes(tile.element), parts)
        except LegoError as e:
            raise self._step.error(e.message, tile.op, e.hint) from None

    def _made_of(self, tile: Tile, found: TensorMap) -> Any:
        key = (tile.buffer, found.dims, found.shape, found.strides, found.box, found.swizzle)
        if key not in self._made:
            self._made[key] = self._make(tile, found)
        return self._made[key]

    def _joined(self, maps: list[Any], tile: Tile) -> Any:
        """Several maps as one parameter."""
        key = tuple(maps)
        if key not in self._made:
            with ir.InsertionPoint(self._launch), tile.op.location:
                pointer = ir.Type.parse("!llvm.ptr")
                op = ir.Operation.create(TENSOR_MAPS, results=[pointer], operands=maps)
            self._made[key] = op.results[0]
        return self._made[key]

    def _make(self, tile: Tile, found: TensorMap) -> Any:
        numbers = ir.DenseI64ArrayAttr.get
        i64 = ir.IntegerType.get_signless(64)
        with ir.InsertionPoint(self._launch), tile.op.location:
            op = ir.Operation.create(
                TENSOR_MAP,
                results=[ir.Type.parse("!llvm.ptr")],
                operands=[tile.buffer],
                attributes={
                    "layout": layout_attribute(tile.layout),
                    "shape": numbers(list(found.shape)),
                    "strides": numbers(list(found.strides)),
                    "box": numbers(list(found.box)),
                    "swizzle": ir.IntegerAttr.get(i64, found.swizzle),
                },
            )
        return op.results[0]


def require_alignment(shared: Tile, alignment: int) -> None:
    """Let the buffer of a tile begin at a multiple of so many bytes."""
    room = shared.buffer.owner
    i64 = ir.IntegerType.get_signless(64)
    known = room.attributes
    before = ir.IntegerAttr(known[ALIGNMENT]).value if ALIGNMENT in known else 1
    known[ALIGNMENT] = ir.IntegerAttr.get(i64, max(before, alignment))


_MOST_OFFSETS = (1 << 31) - 1
"""Coordinates of a tensor map are signed, of 32 bits (PTX ISA 9.7.9.27, cp.async.bulk.tensor)."""


class Corners:
    """Where tiles begin in their tensors.

    What several have in common is computed once, at the insertion point of the first.
    """

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def __call__(self, tile: Tile, mapped: Mapped) -> list[Place]:
        """Where a tile begins, one place a dimension of its tensor, innermost first.

        Args:
            tile: of the tensor, or of one of several.
            mapped: its maps.
        """
        views = [_levels(layout) for layout in mapped.layouts]
        rank = len(views[0][0])
        places = []
        for dim in mapped.shape.dims:
            # Of several tensors the one of most tiles: how many there are has no part in this.
            sizes = [max(view[level][dim] for view in views) for level in range(len(views[0]))]
            # TMA fills in zeros for a tile that begins beyond the end, as the last one of a split K
            # may, so the first size is no bound: a row-major order needs it for nothing else.
            row = OrderBy(Row(_MOST_OFFSETS // prod(sizes[1:]), *sizes[1:]))
            index = [tile.index[level * rank + dim] for level in range(len(sizes))]
            known = [i if isinstance(i, int) else 0 for i in index]
            rest = tuple(0 if i is None or isinstance(i, int) else i for i in index)
            places.append(Place(self._of(row, rest), int(row.apply(*known))))
        return places

    def _of(self, row: Layout, index: tuple[Any, ...]) -> Any:
        """The offset in a row-major order, an i32; `None` for the first."""
        if all(isinstance(i, int) for i in index):
            return None
        if (row, index) not in self._made:
            i32 = ir.IntegerType.get_signless(32)
            self._made[row, index] = arith.IndexCastOp(i32, apply(row, index)).result
        return self._made[row, index]


class Place(NamedTuple):
    """A coordinate: a number, and an i32 that comes to it if there is one."""

    value: Any
    number: int

    def plus(self, distance: Any) -> Any:
        """The coordinate so much further on: a number, or an i32."""
        if isinstance(distance, int):
            return total(self.value, self.number + distance)
        return total(total(self.value, self.number), distance)


def total(value: Any, other: Any) -> Any:
    """The sum of two numbers as an i32, either of them an i32 or an int; `None` is 0."""
    if isinstance(other, int):
        if value is None:
            return i32_constant(other)
        if other == 0:
            return value
        other = i32_constant(other)
    return arith.AddIOp(value, other).result


def _levels(layout: Layout) -> list[tuple[int, ...]]:
    """The sizes of a tiled tensor, level by level."""
    assert layout.view is not None
    return [tuple(int(n) for n in sizes) for sizes in layout.view.tiles]
