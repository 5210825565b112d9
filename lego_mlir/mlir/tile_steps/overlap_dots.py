"""`transform_lego.overlap_dots`: dots by `wgmma` run while other work goes on.

    %s = "lego.dot"(%q, %k, %zero)
    "lego.release"(%keys, %i)
    %o = "lego.dot"(%p, %v, %sums)
    %x = arith.mulf %s, %scale

becomes

    %0 = "lego.dot_async"(%q, %k, %zero)
    %1 = "lego.dot_async"(%p, %v, %sums)
    %s = "lego.dot_wait"(%0) {pending = 1}
    "lego.release"(%keys, %i)
    %x = arith.mulf %s, %scale

Each dot is waited for right before its result is used, or at the end of its block, while those that
began after it may go on. A ring's tile is released behind the waits for the dots that read it.

A dot that is alone in a loop, which carries its accumulator, goes on until that of the next
iteration has begun, and its tiles are released one iteration late:

    scf.for %i ... iter_args(%sum) {
      %x = "lego.wait"(%ring, %i)
      %next = "lego.dot_async"(%a, %x, %sum) {pending = 1}
      "lego.release"(%ring, %i - 1)
      yield %next
    }
    %total = "lego.dot_wait"(%end) {pending = 0}
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot
from lego_mlir.mlir.tile_steps.kernels import (
    body_of,
    first_of,
    following,
    kernels_of,
    operations_of,
    users_in,
)
from lego_mlir.mlir.tile_steps.rotation import Rotation, runs_at_least_once


@transform("overlap_dots")
def overlap_dots(step: TransformStep) -> list[list[Any]]:
    """Make the dots of kernels asynchronous, where they are by wgmma."""
    for kernel in kernels_of(step):
        for loop in [op for op in operations_in(kernel.launch) if op.name == "scf.for"]:
            _keep_in_flight(step, loop)
        dots = [
            op
            for op in operations_in(kernel.launch)
            if op.name == tiles.DOT and is_warpgroup_dot(op)
        ]
        waits = [_begin(step, op) for op in dots]
        for wait in waits:
            _set_pending(wait)
    return []


def _keep_in_flight(step: TransformStep, loop: Any) -> None:
    """Let the only dot of a loop, whose accumulator it carries, go on into the next iteration."""
    block = body_of(loop)
    *operations, end = operations_of(block)
    dots = [op for op in operations if op.name == tiles.DOT]
    if len(dots) != 1 or not is_warpgroup_dot(dots[0]) or not runs_at_least_once(loop):
        return
    (dot,) = dots
    (result,), accumulator = dot.results, dot.operands[2]
    carried = [k for k, x in enumerate(end.operands) if x == result]
    number = carried[0] if len(carried) == 1 and len(list(result.uses)) == 1 else None
    if number is None or accumulator != list(block.arguments)[1 + number]:
        return
    releases = {r for x in list(dot.operands)[:2] for r in _releases(x) if r.block == block}
    rotation = Rotation(loop, releases, dot)
    rotation.build()
    begun = [(rotation.first[result], None), (rotation.inside[result], 1)]
    for value, pending in begun:
        old = value.owner.operation
        with ir.InsertionPoint(old), old.location:
            a, b, start = old.operands
            value.replace_all_uses_with(pipelines.dot_async(a, b, start, pending))
        step.erase(old)
    total = rotation.made.results[number]
    with ir.InsertionPoint(following(rotation.made)), loop.location:
        finished = pipelines.dot_wait(total, 0)
    total.replace_all_uses_except(finished, finished.owner.operation)
    step.erase(loop)


def _begin(step: TransformStep, dot: Any) -> Any:
    """Make a dot asynchronous, with a wait for all groups before its first use; return the wait."""
    block = dot.block
    end = operations_of(block)[-1]
    first = first_of([*users_in(dot.results[0], block), end])
    with ir.InsertionPoint(dot), dot.location:
        begun = pipelines.dot_async(*dot.operands)
    with ir.InsertionPoint(first), dot.location:
        found = pipelines.dot_wait(begun, 0)
    dot.results[0].replace_all_uses_with(found)
    wait = found.owner.operation
    for operand in list(dot.operands)[:2]:
        _release_behind(operand, wait)
    step.erase(dot)
    return wait


def _release_behind(operand: Any, wait: Any) -> None:
    """Move the release of a ring's tile behind the wait for a dot that reads it."""
    for release in _releases(operand):
        if release.block == wait.block and release.is_before_in_block(wait):
            release.move_after(wait)


def _releases(operand: Any) -> list[Any]:
    """Return the releases of the ring's tile that an operand of a dot is, if it is one."""
    while not isinstance(operand, ir.BlockArgument) and operand.owner.name == tiles.TRANSPOSE:
        operand = operand.owner.operands[0]
    if isinstance(operand, ir.BlockArgument) or operand.owner.name != pipelines.WAIT:
        return []
    ring, number = operand.owner.operands
    users = (use.owner.operation for use in ring.uses)
    return [op for op in users if op.name == pipelines.RELEASE and op.operands[1] == number]


def _set_pending(wait: Any) -> None:
    """Let a wait leave those groups in flight that begin between its dot and itself."""
    block = wait.block
    begun = wait.operands[0].owner.operation
    between = operations_of(block)
    between = between[between.index(begun) + 1 : between.index(wait)]
    nested = (inner for op in between for inner in operations_in(op))
    if any(inner.name == pipelines.DOT_ASYNC for inner in nested):
        return  # it is not known how many
    younger = sum(op.name == pipelines.DOT_ASYNC for op in between)
    i64 = ir.IntegerType.get_signless(64)
    wait.attributes[pipelines.PENDING] = ir.IntegerAttr.get(i64, younger)
