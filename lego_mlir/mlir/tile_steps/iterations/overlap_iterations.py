"""`transform_lego.overlap_iterations`: dots that only accumulate run on in the next iteration.

    scf.for %i = %lo to %hi ... iter_args(%c = %zero) {
      %a = "lego.wait"(%as, %i)
      %b = "lego.wait"(%bs, %i)
      %d = "lego.dot"(%a, %b, %c)
      "lego.release"(%as, %i)
      "lego.release"(%bs, %i)
      yield %d
    }

becomes

    %a0 = "lego.wait"(%as, %lo)        the first iteration, whose dot defines the accumulator
    %b0 = "lego.wait"(%bs, %lo)
    %d0 = "lego.dot_async"(%a0, %b0, %zero)
    scf.for %i = %lo + 1 to %hi ... iter_args(%c = %d0) {
      %a = "lego.wait"(%as, %i)
      %b = "lego.wait"(%bs, %i)
      %d = "lego.dot_async"(%a, %b, %c)
      "lego.dot_wait"(%c) {pending = 1}
      "lego.release"(%as, %i - 1)
      "lego.release"(%bs, %i - 1)
      yield %d
    }
    "lego.dot_wait"(%d) {pending = 0}
    "lego.release"(%as, last), ...

A loop is taken whose dots, one or several, have what the loop carries as their accumulators and
nothing else uses their results: a GEMM, or two with one epilogue. What it loads is in shared
memory, and it must be known to run once.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot, why_no_wgmma
from lego_mlir.mlir.tile_ir.iterations import runs_at_least
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_steps.iterations.rotation import Rotation
from lego_mlir.mlir.tile_steps.kernels import following, loops_of, operations_of


@transform("overlap_iterations")
def overlap_iterations(step: TransformStep) -> list[list[Any]]:
    """Overlap the iterations of the loops whose dots only add to what they carry."""
    loops = loops_of(step)
    found = [(loop, dots) for _, loop in loops if (dots := _accumulating(loop))]
    if loops and not found:
        raise step.error(
            "no loop has dots by wgmma that only add to what it carries" + _why(*loops[0]),
            loops[0][1],
            hint="the accumulator of each dot is carried by the loop, and nothing else in the loop "
            "uses it; the operands that the loop loads are in shared memory, as for a target that "
            "has wgmma",
        )
    for loop, dots in found:
        _overlap(step, loop, dots)
    return []


def _accumulating(loop: Any) -> list[Any]:
    """Return the dots of a loop if it can be overlapped, else none."""
    *operations, end = operations_of(body_of(loop))
    dots = _dots(loop)
    carried = list(body_of(loop).arguments)[1:]
    yielded = list(end.operands)
    for dot in dots:
        accumulator, (result,) = dot.operands[2], dot.results
        is_one = dot.name == tiles.DOT and dot in operations and is_warpgroup_dot(dot)
        if not is_one or accumulator not in carried or result not in yielded:
            return []
        if yielded.index(result) != carried.index(accumulator) or not _stays(dot.operands[0], loop):
            return []
        if any(len(list(value.uses)) != 1 for value in (accumulator, result)):
            return []
    return dots


def _dots(loop: Any) -> list[Any]:
    """Return the dots of a loop, those of loops and branches in it among them."""
    nested = [inner for op in operations_of(body_of(loop)) for inner in (op, *operations_in(op))]
    return [op for op in nested if op.name in (tiles.DOT, pipelines.DOT_ASYNC)]


def _why(kernel: TileKernel, loop: Any) -> str:
    """Return what keeps a loop's first dot from running on, with a colon before it; or nothing."""
    for dot in _dots(loop)[:1]:
        if dot.name == tiles.DOT and not is_warpgroup_dot(dot):
            why = why_no_wgmma(kernel, dot) or "wgmma costs more here"
            return f": its dot is one of mma.sync: {why}"
        if not _stays(dot.operands[0], loop):
            return (
                ": operand A of its dot is computed in registers. So is one whose size along k is "
                "rounded up, which a power of two or a multiple of 16 up to 256 is not"
            )
    return ""


def _stays(operand: Any, loop: Any) -> bool:
    """Return whether operand A is the same while the next iteration begins.

    Registers that each iteration fills anew are not.
    """
    if is_shared_tile(operand):
        return True
    at = operand.owner.owner if isinstance(operand, ir.BlockArgument) else operand.owner
    while at is not None and at.operation != loop:
        at = at.operation.parent
    return at is None


def _overlap(step: TransformStep, loop: Any, dots: list[Any]) -> None:
    """Rewrite one loop.

    Raises:
        LegoError: it is not known to run once.
    """
    if not runs_at_least(loop, 1):
        raise step.error(
            "this loop is not known to run at least once",
            loop,
            hint="its first iteration is in front of the loop: give it bounds that are "
            "constant, or at least one more than an index",
        )
    results = [dot.results[0] for dot in dots]
    carried = list(body_of(loop).arguments)[1:]
    numbers = [carried.index(dot.operands[2]) for dot in dots]
    releases = {op for op in operations_of(body_of(loop)) if op.name == pipelines.RELEASE}
    rotation = Rotation(loop, releases, dots[-1])
    rotation.build()
    for values in (rotation.first, rotation.inside):
        begun = [_begin(step, values[result]) for result in results]
    # The groups of the iteration before end with that of its last dot.
    last = begun[-1].owner.operation
    with ir.InsertionPoint(following(last)), loop.location:
        pipelines.dot_wait(last.operands[2], len(dots))
    with ir.InsertionPoint(following(rotation.made)), loop.location:
        for number in numbers:
            total = rotation.made.results[number]
            finished = pipelines.dot_wait(total, 0)
            total.replace_all_uses_except(finished, finished.owner.operation)
    step.erase(loop)


def _begin(step: TransformStep, result: Any) -> Any:
    """Make a dot asynchronous; return its new result."""
    dot = result.owner.operation
    with ir.InsertionPoint(dot), dot.location:
        begun = pipelines.dot_async(*dot.operands)
    result.replace_all_uses_with(begun)
    step.erase(dot)
    return begun
