"""`transform_lego.copies_to_tma`: tiles fetched by the tensor memory accelerator.

    nvvm.mbarrier.arrive.expect_tx %full, %bytes
    %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}
    "lego.store"(%x, %s, %slot) {layout = #slots, slice = array<i64: 1, 2>}

becomes, with a tensor map that the host makes of the two layouts,

    %map = "lego.tensor_map"(%a) {box = array<i64: 64, 128>, swizzle = 128 : i64, ...}
    nvvm.mbarrier.arrive.expect_tx %full, %bytes
    nvvm.cp.async.bulk.tensor.shared.cluster.global %s_at_slot, %map, %full, box[%k64, %m128]

A tile whose store says `multicast = 2` is fetched in parts, one by each block of the cluster, each
of which goes to all of them.

Source: PTX ISA 9.7.9.25 (cp.async.bulk.tensor).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.tma import TensorMap, tensor_map
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import nvvm
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.buffers import ALIGNMENT
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lower_lego import TENSOR_MAP
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.transforms.operation import Step, transform
from lego_mlir.mlir.transforms.pointers import (
    address,
    as_pointer,
    element_bytes,
    i32_constant,
    in_cluster,
)
from lego_mlir.mlir.transforms.tiles import Tile, apply, tile_of

MULTICAST = "multicast"
"""The attribute of a store to shared memory that all blocks of the cluster do together."""


@transform("copies_to_tma")
def copies_to_tma(step: Step) -> list[list[Any]]:
    """Fetch the tiles that kernels copy to shared memory by TMA."""
    for launch in step.payload():
        maps = TensorMaps(step, launch)
        for op in list(operations_in(launch)):
            if op.name != "lego.store":
                continue
            stored = tile_of(op, step.setting)
            source = _loaded(stored, step)
            if source is not None and stored.is_shared and not source.is_shared:
                _fetch(step, source, stored, maps)
    return []


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

    def __call__(self, tile: Tile, shared: Tile, parts: int = 1) -> tuple[TensorMap, Any]:
        """The tensor map for copies between a tile and its copy in shared memory, and its value.

        Raises:
            LegoError: at the tile's access: TMA cannot copy it.
        """
        size = element_bytes(tile.element)
        try:
            found = tensor_map(tile.layout, shared.piece(), size, parts)
        except LegoError as e:
            raise self._step.error(e.message, tile.op, e.hint) from None
        require_alignment(shared, found.alignment)
        key = (tile.buffer, found.dims, found.shape, found.strides, found.box, found.swizzle)
        if key not in self._made:
            self._made[key] = self._make(tile, found)
        return found, self._made[key]

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


class Corners:
    """Where tiles begin in their tensors.

    What several have in common is computed once, at the insertion point of the first.
    """

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def __call__(self, tile: Tile, found: TensorMap) -> list[Place]:
        """Where a tile begins, one place a dimension of its tensor, innermost first.

        Args:
            tile: of the tensor.
            found: its tensor map.
        """
        view = tile.layout.view
        assert view is not None
        rank = len(view.tiles[0])
        places = []
        for dim in found.dims:
            row = OrderBy(Row(*(sizes[dim] for sizes in view.tiles)))
            index = [tile.index[level * rank + dim] for level in range(len(view.tiles))]
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
            return _sum(self.value, self.number + distance)
        return _sum(_sum(self.value, self.number), distance)


def _sum(value: Any, other: Any) -> Any:
    """The sum of two numbers as an i32, either of them an i32 or an int; `None` is 0."""
    if isinstance(other, int):
        if value is None:
            return i32_constant(other)
        if other == 0:
            return value
        other = i32_constant(other)
    return arith.AddIOp(value, other).result


def _fetch(step: Step, source: Tile, stored: Tile, maps: TensorMaps) -> None:
    op = stored.op
    barrier = _barrier_before(step, op)
    parts = ir.IntegerAttr(op.attributes[MULTICAST]).value if MULTICAST in op.attributes else 1
    found, pointer = maps(source, stored, parts)
    size = element_bytes(source.element)
    with ir.InsertionPoint(op), op.location:
        rank = mask = None
        if parts > 1:
            rank = nvvm.rank_in_cluster()
            mask = arith.ConstantOp(ir.IntegerType.get_signless(16), (1 << parts) - 1).result
        corner = Corners()(source, found)
        index = [0 if i is None else i for i in stored.index]
        start = address(stored.buffer, stored.layout, index)
        for first in range(0, len(found.boxes), parts):
            boxes = found.boxes[first : first + parts]
            at = [
                place.plus(_of_rank([box.at[d] for box in boxes], rank))
                for d, place in enumerate(corner)
            ]
            room = _sum(start, _of_rank([box.offset * size for box in boxes], rank))
            target = in_cluster(as_pointer(room))
            nvvm.fetch_tile(target, pointer, at, barrier, mask)
    load = source.op
    step.erase(op)
    step.erase(load)


def _of_rank(numbers: Sequence[int], rank: Any) -> Any:
    """The number that belongs to the block's rank in its cluster: an i32, or the int of all."""
    if all(n == numbers[0] for n in numbers):
        return numbers[0]
    value = i32_constant(numbers[0])
    for k, n in enumerate(numbers[1:], start=1):
        if n != numbers[0]:
            mine = arith.CmpIOp(arith.CmpIPredicate.eq, rank, i32_constant(k)).result
            value = arith.SelectOp(mine, i32_constant(n), value).result
    return value


def _loaded(stored: Tile, step: Step) -> Tile | None:
    """The tile whose value is stored, if it is loaded for that alone."""
    value = stored.value
    if not stored.whole or hasattr(value, "arg_number"):
        return None
    op = value.owner.operation
    if op.name != "lego.load" or len(list(value.uses)) != 1:
        return None
    return tile_of(op, step.setting)


def _barrier_before(step: Step, op: Any) -> Any:
    """The barrier that counts an operation's bytes: the last that was told to expect some."""
    last = op
    while last.name != "gpu.launch":
        operations = [o.operation for o in last.block.operations]
        for before in reversed(operations[: operations.index(last)]):
            if before.name == "nvvm.mbarrier.arrive.expect_tx":
                return before.operands[0]
        last = last.parent.operation
    raise step.error(
        "looked for the barrier that this copy completes, an nvvm.mbarrier.arrive.expect_tx "
        "before it; found none",
        op,
        hint="transform_lego.specialize_warps makes the ring that TMA fills",
    )
