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
    first_of,
    kernels_of,
    operations_of,
    users_in,
)


@transform("overlap_dots")
def overlap_dots(step: TransformStep) -> list[list[Any]]:
    """Make the dots of kernels asynchronous, where they are by wgmma."""
    for kernel in kernels_of(step):
        dots = [
            op
            for op in operations_in(kernel.launch)
            if op.name == tiles.DOT and is_warpgroup_dot(op)
        ]
        waits = [_begin(step, op) for op in dots]
        for wait in waits:
            _set_pending(wait)
    return []


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
