"""`transform_lego.promote`: tensor cores add up a few iterations, threads add these sums in f32.

    %sum = scf.for %i = 0 to 32 iter_args(%c = %zero) {
      %d = "lego.dot"(%a, %b, %c)
      yield %d
    }

becomes, with `promote = 4`,

    %sum = scf.for %j = 0 to 8 iter_args(%total = %zero) {
      %first = %j * 4
      %part = scf.for %k = 0 to 4 iter_args(%c = 0) {
        %i = %first + %k
        %d = "lego.dot"(%a, %b, %c)
        yield %d
      }
      yield %total + %part
    }

Hopper's tensor cores keep few bits of sums of 8-bit floats, so that errors of long sums show. A
loop is taken whose dots, one or several, have what it carries as their accumulators of f32 and
nothing else uses their results; `promote = 0` changes nothing. Of 9 iterations three times 3 are
added up; of 10, or if only the launch knows how many there are, the last sum is shorter:

    scf.for %j = 0 to 3 {
      %part = scf.for %k = 0 to min(4, 10 - %j * 4) ...
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.accumulating import (
    accumulates,
    build_iterations,
    iterations_of,
    loop_like,
    move_body,
    zeros,
)
from lego_mlir.mlir.tile_steps.kernels import loops_of


@transform("promote")
def promote(step: TransformStep) -> list[list[Any]]:
    """Promote the accumulators of the loops whose dots only add to what they carry."""
    count = step.number("promote")
    if count < 0:
        raise step.misuse(f"promote is {count}", hint=step.option("promote", 4))
    loops = loops_of(step)
    found = [(kernel, loop) for kernel, loop in loops if count and accumulates(loop)]
    if loops and count and not found:
        raise step.error(
            "no loop has dots that only add to what it carries in f32",
            loops[0][1],
            hint="the accumulator of each dot is carried by the loop, and nothing else in the loop "
            "uses it",
        )
    for kernel, loop in found:
        _promote(step, loop, count)
        kernel.launch.attributes[dialect.REASSOCIATED] = ir.UnitAttr.get()
    return []


def _promote(step: TransformStep, loop: Any, most: int) -> None:
    """Rewrite one loop."""
    low, _, stride, *initial = list(loop.operands)
    with ir.InsertionPoint(loop), loop.location:
        known, trips = iterations_of(loop), build_iterations(loop)
        count = most if known is None else _equal(known, most)
        zero, one, size = (build.index(n) for n in (0, 1, count))
        if known is None:
            parts = build.binary("ceildivsi", trips, size)
        else:
            parts = build.index(ceildiv(known, count))
        outer, (number, *totals) = loop_like(loop, [zero, parts, one])
        with ir.InsertionPoint(body_of(outer)):
            none = [zeros(x.type) for x in initial]
            limit = size
            if known is None or known % count:
                left = build.binary("subi", trips, build.binary("muli", number, size))
                limit = build.binary("minsi", size, left)
            if known is None:  # there is a sum because iterations are left, which is not proven
                limit = build.binary("maxsi", limit, one)
            inner, (k, *sums) = loop_like(loop, [zero, limit, one], none)
            with ir.InsertionPoint(body_of(inner)):
                whole = build.binary("muli", number, size)
                at = build.binary("addi", whole, k)
                at = build.binary("addi", low, build.binary("muli", at, stride))
            added = [build.binary("addf", a, b) for a, b in zip(totals, inner.results, strict=True)]
            ir.Operation.create("scf.yield", operands=added)
    move_body(loop, inner, [at, *sums])
    for old, new in zip(loop.results, outer.results, strict=True):
        old.replace_all_uses_with(new)
    step.erase(loop)


def _equal(trips: int, most: int) -> int:
    """Return how many iterations are added up at a time: equally many in each sum, or the most."""
    sums = max(1, ceildiv(trips, most))
    return trips // sums if trips and trips % sums == 0 else most
