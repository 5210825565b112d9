"""Counts that loops carry: how often something inside of them has been done so far.

    scf.for %t ... { scf.for %i = 0 to %trips { } }

becomes

    scf.for %t ... iter_args(%count = 0) {
      scf.for %i = 0 to %trips { }
      yield %count + %trips
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import body_of, operations_of


def carry_count(step: TransformStep, loops: list[Any], around: Sequence[Any], more: Any) -> Any:
    """Let nested loops carry a count that begins at 0; return it as the innermost one begins.

    Args:
        step: the transform step.
        loops: handles of loops, in which those that are replaced are exchanged.
        around: the loops, the innermost first.
        more: what an iteration of the innermost loop adds, an index.
    """
    *_, outermost = around
    with ir.InsertionPoint(outermost), outermost.location:
        entering = build.index(0)
    replaced = []
    for loop in reversed(around):
        made = _with_argument(loop, entering)
        for k, other in enumerate(loops):
            if other == loop:
                loops[k] = made
        step.erase(loop)
        replaced.append(made)
        entering = list(body_of(made).arguments)[-1]
    for loop, inner in zip(replaced, [*replaced[1:], None], strict=True):
        *_, end = operations_of(body_of(loop))
        with ir.InsertionPoint(end), loop.location:
            if inner is None:
                after = build.binary("addi", entering, more)
            else:
                after = list(inner.results)[-1]
            ir.Operation.create("scf.yield", operands=[*end.operands, after])
        end.erase()
    return entering


def _with_argument(loop: Any, entering: Any) -> Any:
    """Build a loop that carries one value more, whose yield lacks it yet; nothing uses the old."""
    kinds = [*(x.type for x in loop.results), entering.type]
    with ir.InsertionPoint(loop), loop.location:
        made = ir.Operation.create(
            loop.name,
            results=kinds,
            operands=[*loop.operands, entering],
            attributes=named_attributes(loop),
            regions=1,
        )
    types = [body_of(loop).arguments[0].type, *kinds]
    body = made.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
    for old, new in zip(body_of(loop).arguments, body.arguments, strict=False):
        old.replace_all_uses_with(new)
    with ir.InsertionPoint(body), loop.location:
        here = ir.Operation.create("gpu.barrier")  # operations move before it
    for op in operations_of(body_of(loop)):
        op.move_before(here)
    here.erase()
    for old, new in zip(loop.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    return made
