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

from collections.abc import Sequence
from typing import Any

from lego_mlir.index import construct
from lego_mlir.index.ranges import is_positive
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.dots import is_warpgroup_dot
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import body_of, integer, loops_of, operations_of
from lego_mlir.mlir.tile_steps.role_slices import is_scalar


@transform("overlap_iterations")
def overlap_iterations(step: TransformStep) -> list[list[Any]]:
    """Overlap the iterations of the loops whose dots only add to what they carry."""
    loops = loops_of(step)
    found = [loop for _, loop in loops if _accumulating(loop)]
    if loops and not found:
        raise step.error(
            "no loop has dots by wgmma that only add to what it carries",
            loops[0][1],
            hint="the accumulator of each dot is carried by the loop, and nothing else in the loop "
            "uses it; the operands that the loop loads are in shared memory, as for a target that "
            "has wgmma",
        )
    for loop in found:
        _Overlap(step, loop).build()
    return []


def _accumulating(loop: Any) -> list[Any]:
    """Return the dots of a loop if it can be overlapped, else none."""
    *operations, end = operations_of(body_of(loop))
    nested = [inner for op in operations for inner in (op, *operations_in(op))]
    dots = [op for op in nested if op.name in (tiles.DOT, pipelines.DOT_ASYNC)]
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


class _Overlap:
    """The rewrite of one loop."""

    def __init__(self, step: TransformStep, loop: Any) -> None:
        self._step = step
        self._loop = loop
        self._block = body_of(loop)
        *self._operations, self._end = operations_of(self._block)
        self._dots = _accumulating(loop)
        self._releases = [op for op in self._operations if op.name == pipelines.RELEASE]

    def build(self) -> None:
        """Build the first iteration, the loop, and what ends the last iteration."""
        loop = self._loop
        low, high, stride, *initial = list(loop.operands)
        self._check_runs(low, high)
        with ir.InsertionPoint(loop), loop.location:
            entering = self._iteration(low, initial)
            made = self._make_loop([build.binary("addi", low, stride), high, stride], entering)
            final = list(made.results)
            for dot in self._dots:
                k = self._number(dot)
                final[k] = pipelines.dot_wait(final[k], 0)
            self._release(self._last(low, high, stride))
        for old, new in zip(loop.results, final, strict=True):
            old.replace_all_uses_with(new)
        self._step.erase(loop)

    def _check_runs(self, low: Any, high: Any) -> None:
        reader = IndexReader()
        if not is_positive(construct.sub(reader.read(high), reader.read(low))):
            raise self._step.error(
                "this loop is not known to run at least once",
                self._loop,
                hint="its first iteration is in front of the loop: give it bounds that are "
                "constant, or at least one more than an index",
            )

    def _number(self, dot: Any) -> int:
        """Return which of the carried values is a dot's accumulator."""
        return list(self._block.arguments)[1:].index(dot.operands[2])

    def _make_loop(self, bounds: list[Any], entering: list[Any]) -> Any:
        loop = self._loop
        kinds = [x.type for x in entering]
        made = ir.Operation.create(
            "scf.for",
            results=kinds,
            operands=[*bounds, *entering],
            attributes=named_attributes(loop),
            regions=1,
        )
        types = [self._block.arguments[0].type, *kinds]
        body = made.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
        variable, *carried = body.arguments
        with ir.InsertionPoint(body):
            following = self._iteration(variable, carried)
            # The groups of the iteration before end with that of its last dot.
            pipelines.dot_wait(carried[self._number(self._dots[-1])], len(self._dots))
            self._release(build.binary("subi", variable, bounds[2]))
            ir.Operation.create("scf.yield", operands=following)
        return made

    def _iteration(self, variable: Any, carried: Sequence[Any]) -> list[Any]:
        """Build an iteration without its releases; return what it carries on."""
        arguments = self._block.arguments
        values = dict(zip(arguments, [variable, *carried], strict=True))
        for op in self._operations:
            if op in self._dots:
                operands = [values.get(x, x) for x in op.operands]
                with op.location:
                    values[op.results[0]] = pipelines.dot_async(*operands)
            elif op not in self._releases:
                _clone(op, values)
        return [values.get(x, x) for x in self._end.operands]

    def _release(self, variable: Any) -> None:
        """Build the releases of an iteration, and the scalars that they need."""
        values = {self._block.arguments[0]: variable}
        for op in self._operations:
            if op in self._releases or is_scalar(op):
                _clone(op, values)

    def _last(self, low: Any, high: Any, stride: Any) -> Any:
        """Build the loop variable of the last iteration."""
        if integer(stride) == 1:
            return build.binary("subi", high, stride)
        span = build.binary("subi", build.binary("subi", high, low), build.index(1))
        trips = build.binary("divui", span, stride)
        return build.binary("addi", low, build.binary("muli", trips, stride))


def _clone(op: Any, values: dict[Any, Any]) -> None:
    """Clone an operation with new values for what it uses."""
    copy = op.clone()
    for inner in (copy, *operations_in(copy)):
        for k, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[k] = values[operand]
    values.update(zip(op.results, copy.results, strict=True))
