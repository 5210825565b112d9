"""`transform_lego.copies_to_tma`: copy tiles to shared memory by TMA.

    nvvm.mbarrier.arrive.expect_tx %full, %bytes
    %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}
    "lego.store"(%x, %s, %stage) {layout = #stages, slice = array<i64: 1, 2>}

becomes, with a tensor map that the host encodes from the two layouts,

    %map = "lego.tensor_map"(%a) {box = array<i64: 64, 128>, swizzle = 128 : i64, ...}
    nvvm.mbarrier.arrive.expect_tx %full, %bytes
    nvvm.cp.async.bulk.tensor.shared.cluster.global %s_at_stage, %map, %full, box[%k64, %m128]

`l2_promotion` says how many bytes a load brings into the L2 cache at least; 0, the default, stands
for `analysis.instructions.tma_boxes.L2_PROMOTION`.

Source: PTX ISA 9.7.9.25 (cp.async.bulk.tensor).
"""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import L2_PROMOTIONS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import Tile, tile_of
from lego_mlir.mlir.tiles.pointers import (
    address,
    as_pointer,
    element_bytes,
    in_cluster,
)
from lego_mlir.mlir.tiles.tensor_maps import TensorMaps, TileCoordinates, add_i32


@transform("copies_to_tma")
def copies_to_tma(step: TransformStep) -> list[list[Any]]:
    """Replace copies of tiles from global to shared memory by TMA loads."""
    promotion = step.number("l2_promotion", 0)
    if promotion not in L2_PROMOTIONS:
        raise step.misuse(
            f"TMA cannot promote reads to {promotion} bytes",
            hint=f"l2_promotion is one of {', '.join(map(str, L2_PROMOTIONS))}",
        )
    for launch in step.payload():
        maps = TensorMaps(step, launch, promotion)
        for op in list(operations_in(launch)):
            if op.name != dialect.STORE:
                continue
            stored = tile_of(op, step.pass_context)
            source = _loaded(stored, step)
            if source is not None and stored.is_shared and not source.is_shared:
                _fetch(step, source, stored, maps)
    return []


def _fetch(step: TransformStep, source: Tile, stored: Tile, maps: TensorMaps) -> None:
    op = stored.op
    barrier = _barrier_before(step, op)
    tile_maps = maps(source, stored)
    found = tile_maps.shape
    size = element_bytes(source.element)
    with ir.InsertionPoint(op), op.location:
        coordinates = TileCoordinates()(source, tile_maps)
        pointer = tile_maps.pointer()
        index = [0 if i is None else i for i in stored.index]
        start = address(stored.buffer, stored.layout, index)
        for box in found.boxes:
            at = [x.plus(distance) for x, distance in zip(coordinates, box.at, strict=True)]
            target = as_pointer(add_i32(start, box.offset * size))
            nvvm.fetch_tile(in_cluster(target), pointer, at, barrier, None)
    load = source.op
    step.erase(op)
    step.erase(load)


def _loaded(stored: Tile, step: TransformStep) -> Tile | None:
    """Return the loaded tile whose only use is this store, else `None`."""
    value = stored.value
    if not stored.whole or hasattr(value, "arg_number"):
        return None
    op = value.owner.operation
    if op.name != dialect.LOAD or len(list(value.uses)) != 1:
        return None
    return tile_of(op, step.pass_context)


def _barrier_before(step: TransformStep, op: Any) -> Any:
    """Return the barrier that counts the bytes of `op`: that of the last expect_tx before it."""
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
        hint="run specialize_warps first, which makes the ring buffer that TMA fills",
    )
