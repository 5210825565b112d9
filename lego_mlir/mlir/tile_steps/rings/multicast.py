"""`transform_lego.multicast`: what CTAs of a cluster load in common is loaded once for all of them.

    "lego.copy_async"(%ring, %n, %b, %k, %j) {engine = "tma", ...}

becomes, in a kernel that is launched in clusters of two and whose %j does not depend on the rank,

    "lego.copy_async"(%ring, %n, %b, %k, %j) {engine = "tma", multicast = array<i64: 3, 3>, ...}

Each CTA copies a part of the tile to all. A stage is empty when all have released it. In clusters
of 2 by 2 those of a row have operand A in common, and those of a column operand B.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.cluster_values import ClusterValues
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_pipelines.tensor_copies import boxes_of
from lego_mlir.mlir.tile_steps.kernels import kernels_of


@transform("multicast")
def multicast(step: TransformStep) -> list[list[Any]]:
    """Let the copies of kernels by TMA be multicast that all CTAs of a cluster make."""
    for kernel in kernels_of(step):
        if not kernel.has_own_programs or kernel.cluster < 2:
            continue
        values = ClusterValues(kernel)
        inside = list(operations_in(kernel.launch))
        copies = [op for op in inside if op.name == pipelines.COPY_ASYNC]
        masks: dict[Any, tuple[int, ...]] = {}
        for op in copies:
            ring, found = op.operands[0], _masks(kernel, values, op)
            masks[ring] = found if masks.get(ring, found) == found else ()
        for op in copies:
            if masks[op.operands[0]]:
                found = ir.DenseI64ArrayAttr.get(masks[op.operands[0]])
                op.attributes[pipelines.MULTICAST] = found
        # A cluster may be there for what its CTAs add up.
        is_for_sums = any(op.name == tiles.REDUCE_SCATTER for op in inside)
        if not any(masks.values()) and not is_for_sums:
            raise step.error(
                f"the {kernel.cluster} CTAs of a cluster load no tile in common",
                kernel.launch,
                hint="an order of programs by which neighbours share an operand: {cluster_rows = "
                f"{kernel.cluster} : i64}} of transform_lego.persistent",
            )
    return []


def _masks(kernel: TileKernel, values: ClusterValues, copy: Any) -> tuple[int, ...]:
    """Return for each rank the CTAs that can make a copy together, to which TMA can deal it.

    There are none if each CTA copies for itself.
    """
    ring, _, _, *origin = list(copy.operands)
    masks = values.masks(origin)
    counts = {mask.bit_count() for mask in masks}
    if pipelines.engine_of(copy) != "tma" or len(counts) > 1 or counts == {1}:
        return ()
    if any(values.uncommon_control(use.owner.operation) is not None for use in ring.uses):
        return ()
    try:
        boxes_of(kernel, copy, pipelines.tile_type_of(ring), counts.pop())
    except LegoError:
        return ()
    return masks
