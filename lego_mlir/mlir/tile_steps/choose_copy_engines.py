"""`transform_lego.choose_copy_engines`: the copies into rings that TMA can make are made by TMA.

    "lego.copy_async"(%ring, %n, %a, %i, %j) {engine = "plain", ...}

becomes, if the target has TMA and the tensor's strides and the tile's layout suit it,

    "lego.copy_async"(%ring, %n, %a, %i, %j) {engine = "tma", ...}

All copies into a ring have one engine.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_pipelines.tensor_copies import boxes_of
from lego_mlir.mlir.tile_steps.kernels import kernels_of


@transform("choose_copy_engines")
def choose_copy_engines(step: TransformStep) -> list[list[Any]]:
    """Choose what makes the copies into each ring of kernels."""
    for kernel in kernels_of(step):
        rings: dict[Any, list[Any]] = {}
        for op in operations_in(kernel.launch):
            if op.name == pipelines.COPY_ASYNC:
                rings.setdefault(op.operands[0], []).append(op)
        for copies in rings.values():
            engine = "tma" if all(_suits_tma(kernel, op) for op in copies) else "plain"
            for op in copies:
                op.attributes["engine"] = ir.StringAttr.get(engine)
    return []


def _suits_tma(kernel: TileKernel, copy: Any) -> bool:
    """Return whether TMA can make a copy."""
    try:
        boxes_of(kernel, copy)
    except LegoError:
        return False
    return True
