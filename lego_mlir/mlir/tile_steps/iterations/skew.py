"""`transform_lego.skew`: the last dot of a loop's body comes one iteration late.

    scf.for %i = %lo to %hi ... iter_args(%m, %o) {
      %s = dot(%q, %k)                 the first dot, and what follows from it
      %p = softmax(%s, %m)
      %v = "lego.wait"(%values, %i)
      %o1 = dot(%p, %v, %o)            the last dot, with what only it needs and what follows
      "lego.release"(%values, %i)
      yield %m1, %o1
    }

becomes

    %p0 = softmax(dot(%q, %k))         of the first iteration
    scf.for %i = %lo + 1 to %hi ... iter_args(%m, %o, %p0) {
      %s = dot(%q, %k)
      %v = "lego.wait"(%values, %i - 1)
      %o1 = dot(%p0, %v, %o)           of the iteration before
      "lego.release"(%values, %i - 1)
      %p = softmax(%s, %m)
      yield %m1, %o1, %p
    }
    dot(%p, %v, %o)                    of the last iteration

So the two dots of an iteration do not depend on one another: the late one runs while the softmax of
the other is computed. The loop must be known to run at least once.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import used_by
from lego_mlir.mlir.tile_ir.iterations import runs_at_least
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_steps.iterations.rotation import Rotation
from lego_mlir.mlir.tile_steps.kernels import loops_of, operations_of

_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)
_CHEAP = (tiles.BROADCAST, tiles.FULL, pipelines.WAIT)
"""What is done late if only late operations need it, instead of carrying its result."""


@transform("skew")
def skew(step: TransformStep) -> list[list[Any]]:
    """Skew the loops that have two dots or more."""
    loops = loops_of(step)
    skewed = 0
    for _, loop in loops:
        dots = [op for op in operations_of(body_of(loop)) if op.name in _DOTS]
        if len(dots) > 1:
            _skew(step, loop, dots)
            skewed += 1
    if loops and not skewed:
        raise step.error(
            "no loop has two dots in its body", loops[0][1], hint="skew a loop with two or more"
        )
    return []


def _skew(step: TransformStep, loop: Any, dots: list[Any]) -> None:
    """Rewrite one loop."""
    late = _late(loop, dots[-1])
    if dots[0] in late:
        raise step.error(
            "the first dot of this loop needs the last one of the iteration before",
            loop,
            hint="a loop can be skewed whose first dot does not depend on the last one",
        )
    if not runs_at_least(loop, 1):
        raise step.error(
            "this loop is not known to run at least once",
            loop,
            hint="a skewed loop begins its first iteration before it tests anything: give it "
            "bounds that are constant, or at least one more than an index",
        )
    Rotation(loop, late, dots[0]).build()
    step.erase(loop)


def _late(loop: Any, dot: Any) -> set[Any]:
    """Return a dot, what depends on it, what only these need, and the releases of their tiles."""
    block = body_of(loop)
    *operations, end = operations_of(block)
    arguments = list(block.arguments)[1:]
    found, before = {dot}, 0
    while before != len(found):
        before = len(found)
        values = {r for op in found for r in op.results}
        yielded = zip(arguments, end.operands, strict=True)
        values |= {argument for argument, value in yielded if value in values}
        found |= {op for op in operations if any(x in values for x in used_by(op))}
    for op in reversed(operations):
        if op not in found and _is_cheap(op):
            users = [u.owner.operation for r in op.results for u in r.uses]
            if users and all(user in found for user in users):
                found.add(op)
    waited = {tuple(op.operands) for op in found if op.name == pipelines.WAIT}
    releases = (op for op in operations if op.name == pipelines.RELEASE)
    return found | {op for op in releases if tuple(op.operands) in waited}


def _is_cheap(op: Any) -> bool:
    return op.name in _CHEAP or (
        op.name in (tiles.CONVERT, tiles.TRANSPOSE) and is_shared_tile(op.operands[0])
    )
