"""`transform_lego.choose_copy_engines`: what makes the copies into each ring.

    "lego.copy_async"(%ring, %n, %a, %i, %j) {engine = "plain", ...}

becomes, if the target has TMA and the tensor's strides and the tile's layout suit it,

    "lego.copy_async"(%ring, %n, %a, %i, %j) {engine = "tma", ...}

else, if the target has cp.async and threads can copy 4 bytes or more at a time,

    "lego.copy_async"(%ring, %n, %a, %i, %j) {engine = "cp.async", ...}

All copies into a ring have one engine. With `tensor_copies = 0` no copy is made by TMA, as for
rings that all threads of a CTA fill and read.

A copy by TMA brings `l2_promotion` bytes into the L2 cache at least: 64, 128 or 256; 0 stands for
`analysis.instructions.tma_boxes.L2_PROMOTION`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import L2_PROMOTIONS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect.readers import L2_PROMOTION
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.lower_pipelines.tensor_copies import load_boxes
from lego_mlir.mlir.tile_passes.lower_pipelines.thread_copies import check_thread_copy
from lego_mlir.mlir.tile_steps.kernels import kernels_of

_Engine: TypeAlias = tuple[str, Callable[[Any], object]]


@transform("choose_copy_engines")
def choose_copy_engines(step: TransformStep) -> list[list[Any]]:
    """Choose what makes the copies into each ring of kernels."""
    tensor_copies = step.number("tensor_copies", 1)
    promotion = step.number("l2_promotion", 0)
    if promotion not in L2_PROMOTIONS:
        raise step.misuse(
            f"l2_promotion is {promotion}",
            hint=f"l2_promotion is one of {', '.join(map(str, L2_PROMOTIONS))}",
        )
    for kernel in kernels_of(step):
        # Each with what fails if it cannot make a copy, the best first.
        engines: list[_Engine] = [("cp.async", partial(check_thread_copy, Accesses(kernel)))]
        if tensor_copies:
            engines.insert(0, ("tma", partial(load_boxes, kernel)))
        rings: dict[Any, list[Any]] = {}
        for op in operations_in(kernel.launch):
            if op.name == pipelines.COPY_ASYNC:
                rings.setdefault(op.operands[0], []).append(op)
        for copies in rings.values():
            suiting = (name for name, check in engines if all(_passes(check, op) for op in copies))
            engine = next(suiting, "plain")
            for op in copies:
                op.attributes["engine"] = ir.StringAttr.get(engine)
                if promotion and engine == "tma":
                    i64 = ir.IntegerType.get_signless(64)
                    op.attributes[L2_PROMOTION] = ir.IntegerAttr.get(i64, promotion)
    return []


def _passes(check: Callable[[Any], object], copy: Any) -> bool:
    """Return whether an engine can make a copy."""
    try:
        check(copy)
    except LegoError:
        return False
    return True
