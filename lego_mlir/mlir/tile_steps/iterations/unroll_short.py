"""`transform_lego.unroll_short`: unroll loops of few iterations as a whole.

    scf.for %i = %c0 to %c8 step %c1 { ... }

becomes, if `unroll` is 8 or more,

    scf.for %i = %c0 to %c8 step %c1 { ... } {llvm.loop_annotation = full unrolling}

LLVM unrolls it, so that the loop variable, the stages of rings and the conditions of copies are
constants. Where a ring holds all tiles of a loop, only the first iteration still copies.

The step belongs at the end of `@__transform_main`. Loops of more iterations, or of a number that is
not known, are unchanged.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_steps.kernels import integer

_UNROLLED = "#llvm.loop_annotation<unroll = <disable = false, full = true>>"


@transform("unroll_short")
def unroll_short(step: TransformStep) -> list[list[Any]]:
    """Mark the loops of at most so many iterations, so that LLVM unrolls them."""
    most = step.number("unroll", 0)
    if most < 0:
        raise step.misuse(f"unroll is {most}", hint=step.option("unroll", 8))
    for loop in step.payload():
        if loop.name != "scf.for":
            raise step.error(f"expected a scf.for, found '{loop.name}'", loop)
        low, high, stride = (integer(x) for x in list(loop.operands)[:3])
        if low is None or high is None or stride is None:
            continue
        if 1 < -(-(high - low) // stride) <= most:
            loop.attributes["llvm.loop_annotation"] = ir.Attribute.parse(_UNROLLED)
    return []
