"""`transform_lego.overlap_stores`: a loop's tiles are put into rings during its next iteration.

    scf.for %t = ... {
      %x = multiply(%t)                    a loop of asynchronous dots, and what follows from it
      "lego.acquire"(%ring, %n)
      "lego.put"(%ring, %n, %x)
      "lego.commit"(%ring, %n)
    }

becomes

    %x0 = multiply(of the first iteration)
    scf.for %t = ... iter_args(%x = %x0) {
      %d = "lego.dot_async"(...)           the first dot
      "lego.acquire"(%ring, %n - 1)
      "lego.put"(%ring, %n - 1, %x)        of the iteration before
      "lego.commit"(%ring, %n - 1)
      %next = multiply(%t)                 the rest
      yield %next
    }
    "lego.acquire"(%ring, last) ...

So tensor cores work while threads write a tile to shared memory. The tile is in registers until
then. The loop must be known to run at least once. `pipeline_stores` makes such rings, and
`overlap_iterations` or `overlap_dots` asynchronous dots.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_steps.iterations.rotation import Rotation, runs_at_least_once
from lego_mlir.mlir.tile_steps.kernels import body_of, loops_of, operations_of


@transform("overlap_stores")
def overlap_stores(step: TransformStep) -> list[list[Any]]:
    """Put what loops store one iteration late, behind their first dot."""
    for _, loop in loops_of(step):
        operations = operations_of(body_of(loop))
        late = _puts(operations)
        if not late:
            continue
        dots = [op for op in operations if op.name == pipelines.DOT_ASYNC]
        if not dots:
            raise step.error(
                "the body of this loop begins no dot, during which tiles could be put into rings",
                loop,
                hint="transform_lego.overlap_iterations, or overlap_dots, comes before this step",
            )
        _overlap(step, loop, late, dots[0])
    return []


def _puts(operations: list[Any]) -> set[Any]:
    """Return the operations that put tiles into rings."""
    rings = {op.operands[0] for op in operations if op.name == pipelines.PUT}
    return {op for op in operations if op.name in pipelines.PRODUCES and op.operands[0] in rings}


def _overlap(step: TransformStep, loop: Any, late: set[Any], dot: Any) -> None:
    """Rewrite one loop."""
    if not runs_at_least_once(loop):
        raise step.error(
            "this loop is not known to run at least once",
            loop,
            hint="its first iteration is in front of the loop: give it bounds that are "
            "constant, or at least one more than an index",
        )
    Rotation(loop, late, dot).build()
    step.erase(loop)
