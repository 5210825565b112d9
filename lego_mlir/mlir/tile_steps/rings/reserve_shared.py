"""`transform_lego.reserve_shared`: a CTA takes at least so much shared memory.

    gpu.launch ... { ... }

becomes, with `min_shared_bytes = 119808`,

    gpu.launch ... { ... } {lego.min_shared_bytes = 119808 : i64}

A multiprocessor then holds as many CTAs as there is shared memory for, also of two launches: with
more than half of its memory a CTA has it to itself, and the CTAs of the next launch begin on
multiprocessors that are idle. `plan_shared_memory` makes the buffer of the kernel so large.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_steps.kernels import kernels_of


@transform("reserve_shared")
def reserve_shared(step: TransformStep) -> list[list[Any]]:
    """Let CTAs of kernels take at least `min_shared_bytes` of shared memory; 0 for no limit."""
    least = step.number("min_shared_bytes", 0)
    for kernel in kernels_of(step):
        most = kernel.target.optin_shared_bytes
        if not 0 <= least <= most:
            raise step.misuse(
                f"min_shared_bytes is {least}, and a CTA of {kernel.target} has 0 to {most}",
                hint=step.option("min_shared_bytes", most),
            )
        if least:
            i64 = ir.IntegerType.get_signless(64)
            kernel.launch.attributes[dialect.MIN_SHARED_BYTES] = ir.IntegerAttr.get(i64, least)
    return []
