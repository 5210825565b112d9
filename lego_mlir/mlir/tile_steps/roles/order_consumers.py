"""`transform_lego.order_consumers`: warpgroups begin their dots in turns (ping-pong).

    scf.for %i ... {
      %0 = "lego.dot_async"(...)
      %1 = "lego.dot_async"(...)
      %s = "lego.dot_wait"(%0)
      ...
    }

becomes, for a role of two warpgroups,

    scf.for %i ... {
      "lego.turn_begin"() {groups = 2}
      %0 = "lego.dot_async"(...)
      %1 = "lego.dot_async"(...)
      "lego.turn_end"() {groups = 2}
      %s = "lego.dot_wait"(%0)
      ...
    }

So the tensor cores work for one warpgroup while the other one does what comes behind its dots. With
`turns = 0` nothing is ordered: warpgroups whose dots take much longer than the rest need no turns.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import WARPGROUP_WARPS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_steps.kernels import following, loops_of, operations_of


@transform("order_consumers")
def order_consumers(step: TransformStep) -> list[list[Any]]:
    """Put the dots that the bodies of loops begin together into turns of the warpgroups."""
    turns = step.number("turns", 1)
    if turns not in (0, 1):
        raise step.misuse(f"turns is {turns}", hint=step.option("turns", 1))
    for kernel, loop in loops_of(step) if turns else ():
        begun = _begun(body_of(loop))
        groups = kernel.warps // WARPGROUP_WARPS
        if not begun or groups < 2:
            continue
        with ir.InsertionPoint(begun[0]), loop.location:
            pipelines.turn_begin(groups)
        with ir.InsertionPoint(following(begun[-1])), loop.location:
            pipelines.turn_end(groups)
    return []


def _begun(block: Any) -> list[Any]:
    """Return the dots that a block begins before it first waits for one."""
    found: list[Any] = []
    for op in operations_of(block):
        if op.name == pipelines.DOT_WAIT and found:
            break
        if op.name == pipelines.DOT_ASYNC:
            found.append(op)
    return found
