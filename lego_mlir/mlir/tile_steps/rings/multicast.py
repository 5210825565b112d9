"""`transform_lego.multicast`: what the CTAs of a cluster all load is loaded once, for all of them.

    "lego.copy_async"(%ring, %n, %b, %k, %j) {engine = "tma", ...}

becomes, in a kernel that is launched in clusters and whose %j does not depend on the CTA's rank,

    "lego.copy_async"(%ring, %n, %b, %k, %j) {engine = "tma", multicast, ...}

Each CTA copies a part of the tile to all. A stage is empty when all have released it.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
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
        copies = [op for op in operations_in(kernel.launch) if op.name == pipelines.COPY_ASYNC]
        common = {op.operands[0] for op in copies}
        common -= {op.operands[0] for op in copies if not _is_common(kernel, values, op)}
        for op in copies:
            if op.operands[0] in common:
                op.attributes[pipelines.MULTICAST] = ir.UnitAttr.get()
        if not common:
            raise step.error(
                f"the {kernel.cluster} CTAs of a cluster load no tile in common",
                kernel.launch,
                hint="an order of programs by which neighbours share an operand: {raster_group = "
                f"{kernel.cluster} : i64}} of transform_lego.persistent, or more",
            )
    return []


def _is_common(kernel: TileKernel, values: ClusterValues, copy: Any) -> bool:
    """Return whether all CTAs of a cluster make a copy, and TMA can deal it to them."""
    ring, _, _, *origin = list(copy.operands)
    if pipelines.engine_of(copy) != "tma" or not all(map(values.is_common, origin)):
        return False
    if any(values.uncommon_control(use.owner.operation) is not None for use in ring.uses):
        return False
    try:
        boxes_of(kernel, copy, pipelines.tile_type_of(ring), kernel.cluster)
    except LegoError:
        return False
    return True
