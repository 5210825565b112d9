"""`transform_lego.overlap_stores`: a loop's tiles are put into rings during its next iteration.

    scf.for %t = ... {
      %x = multiply(%t)                    a loop of asynchronous dots, and what follows from it
      scf.for %k = 0 to 4 {                or one put, without a loop
        %part = "lego.extract_part"(%x, %k)
        "lego.acquire"(%ring, %n * 4 + %k)
        "lego.put"(%ring, %n * 4 + %k, %part)
        "lego.commit"(%ring, %n * 4 + %k)
      }
    }

becomes

    scf.for %t = %first ... iter_args(%x = zeros) {
      %d = "lego.dot_async"(...)           the first dot of the loop of dots, before it
      %next = scf.for %i = 1 to ... {      the others
        "lego.dot_async"(...)
        scf.if %first < %t and %i - 1 < 4 { the part %i - 1 of the iteration before }
        "lego.dot_wait"(...) {pending = 1}
        ...
      }
      yield %next
    }
    scf.for %k = 0 to 4 { ... }            of the last iteration

So tensor cores work while threads write a tile to shared memory, and while TMA stores one part the
next one need not wait. The tile is in registers until then. What is put at once, or in more parts
than the loop of dots is known to have iterations, is put behind the first dot. The loop must be
known to run at least once. `pipeline_stores` makes such rings, and `overlap_iterations` or
`overlap_dots` asynchronous dots.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import body_of, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import clone
from lego_mlir.mlir.tile_ir.iterations import runs_at_least
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where
from lego_mlir.mlir.tile_steps.iterations.rotation import Rotation
from lego_mlir.mlir.tile_steps.kernels import (
    following,
    integer,
    last_of,
    loops_of,
    operations_of,
)
from lego_mlir.mlir.tile_steps.scalars import is_scalar

_LOOP = "scf.for"


@transform("overlap_stores")
def overlap_stores(step: TransformStep) -> list[list[Any]]:
    """Put what loops store one iteration late, part by part beside their dots.

    Nothing changes if `overlap_epilogue` is 0.
    """
    for _, loop in loops_of(step) if step.number("overlap_epilogue", 1) else ():
        if _is_of_parts(loop):
            continue
        operations = operations_of(body_of(loop))
        late = _puts(operations)
        if not late:
            continue
        behind = _beside_dots([op for op in operations if op not in late])
        if behind is None:
            raise step.error(
                "the body of this loop begins no dot, during which tiles could be put into rings",
                loop,
                hint="transform_lego.overlap_iterations, or overlap_dots, comes before this step",
            )
        _overlap(step, loop, late, behind)
    return []


def _beside_dots(operations: list[Any]) -> Any | None:
    """Return the first dot of a block, or what stands before its first loop of dots."""
    dots = _dots(operations)
    if dots:
        return dots[0]
    pairs = pairwise(operations)
    return next((before for before, op in pairs if _dots(operations_in(op))), None)


def _dots(operations: Iterable[Any]) -> list[Any]:
    return [op for op in operations if op.name == pipelines.DOT_ASYNC]


def _puts(operations: list[Any]) -> set[Any]:
    """Return the operations that put tiles into rings, and loops that do so part by part."""
    rings = {op.operands[0] for op in operations if op.name == pipelines.PUT}
    puts = {op for op in operations if op.name in pipelines.PRODUCES and op.operands[0] in rings}
    return puts | {op for op in operations if _is_of_parts(op)}


def _is_of_parts(op: Any) -> bool:
    """Return whether an operation is a loop that only puts the parts of a tile."""
    if op.name != _LOOP or list(op.results) or _bounds(op)[::2] != (0, 1):
        return False
    inside = operations_of(body_of(op))
    has_loops = any(len(inner.regions) for inner in inside)
    of_rings = {inner.name for inner in inside if inner.name in pipelines.OF_RING}
    is_simple = not has_loops and not _dots(inside)
    return is_simple and pipelines.PUT in of_rings and of_rings <= set(pipelines.PRODUCES)


def _bounds(loop: Any) -> tuple[int | None, ...]:
    """Return the bounds and the stride of a loop as far as they are constant."""
    return tuple(integer(x) for x in list(loop.operands)[:3])


def _overlap(step: TransformStep, loop: Any, late: set[Any], behind: Any) -> None:
    """Rewrite one loop."""
    if not runs_at_least(loop, 1):
        raise step.error(
            "this loop is not known to run at least once",
            loop,
            hint="its last tile is put behind the loop: give it bounds that are constant, or at "
            "least one more than an index",
        )
    rotation = Rotation(loop, late, behind, is_guarded=True)
    rotation.build()
    for value in operations_of(body_of(rotation.made))[-1].operands:
        _mark_outliving(value)
    step.erase(loop)
    for op in rotation.late:
        if op.name == _LOOP:
            _spread(step, rotation.guard, op)
    if all(map(is_scalar, operations_of(body_of(rotation.guard))[:-1])):
        step.erase(rotation.guard)


def _spread(step: TransformStep, guard: Any, parts: Any) -> None:
    """Put parts in the iterations of the loop of dots behind their branch, if it has as many.

    Args:
        step: the transform step.
        guard: the branch of what is put in all iterations but the first.
        parts: a loop in it over the parts of a tile.
    """
    block = operations_of(guard.block)
    behind = (op for op in block[block.index(guard) + 1 :] if op.name == _LOOP)
    loop = next((op for op in behind if _dots(operations_of(body_of(op)))), None)
    count = integer(list(parts.operands)[1])
    if loop is None or count is None or not runs_at_least(loop, count):
        return
    dot = last_of(_dots(operations_of(body_of(loop))))
    first, _, stride = list(loop.operands)[:3]
    with ir.InsertionPoint(following(dot)), parts.location:
        number = build.binary("subi", body_of(loop).arguments[0], first)
        number = build.binary("divui", number, stride)
        is_due = build.compare("ult", number, build.index(count))
        is_due = build.binary("andi", is_due, guard.operands[0])
        with where(is_due):
            values = {body_of(parts).arguments[0]: number}
            scalars = [op for op in operations_of(parts.block) if is_scalar(op)]
            for op in (*scalars, *operations_of(body_of(parts))[:-1]):
                clone(op, values)
    step.erase(parts)


def _mark_outliving(value: Any) -> None:
    """Mark the wait for a dot whose result is carried as it is, when new dots begin."""
    if not isinstance(value, ir.BlockArgument) and value.owner.name == pipelines.DOT_WAIT:
        value.owner.attributes[pipelines.OUTLIVES] = ir.UnitAttr.get()
