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
nothing else uses their results, and whose iterations are a multiple of `promote`; 0 changes
nothing.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.types import element_of, is_tile
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import body_of, integer, loops_of, operations_of

_LOOP = "scf.for"


@transform("promote")
def promote(step: TransformStep) -> list[list[Any]]:
    """Promote the accumulators of the loops whose dots only add to what they carry."""
    count = step.number("promote")
    if count < 0:
        raise step.misuse(f"promote is {count}", hint=step.option("promote", 4))
    loops = loops_of(step)
    found = [(kernel, loop) for kernel, loop in loops if count and _accumulates(loop)]
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


def _accumulates(loop: Any) -> bool:
    """Return whether a loop carries nothing but accumulators in f32, each for a dot in its body."""
    *operations, end = operations_of(body_of(loop))
    dots = [op for op in operations_in(loop) if op.name == tiles.DOT]
    carried = list(body_of(loop).arguments)[1:]
    if not carried or len(dots) != len(carried) or any(dot not in operations for dot in dots):
        return False
    return all(
        is_tile(argument)
        and str(element_of(argument)) == "f32"
        and [use.owner.operation for use in argument.uses] == [value.owner.operation]
        and value.owner.operation in dots
        and value.owner.operands[2] == argument
        and len(list(value.uses)) == 1
        for argument, value in zip(carried, end.operands, strict=True)
        if not isinstance(value, ir.BlockArgument)
    )


def _promote(step: TransformStep, loop: Any, count: int) -> None:
    """Rewrite one loop.

    Raises:
        LegoError: its iterations are not known to be a multiple of `count`.
    """
    low, high, stride, *initial = list(loop.operands)
    bounds = [n for x in (low, high, stride) if (n := integer(x)) is not None]
    trips = len(range(*bounds)) if len(bounds) == len((low, high, stride)) else None
    if trips is None or trips % count:
        shown = "an unknown number of" if trips is None else str(trips)
        raise step.error(
            f"the loop has {shown} iterations, which are no multiple of {count}",
            loop,
            hint=step.option("promote", gcd(count, trips or 1)),
        )
    with ir.InsertionPoint(loop), loop.location:
        outer, (number, *totals) = _loop(loop, [build.index(n) for n in (0, trips // count, 1)])
        with ir.InsertionPoint(body_of(outer)):
            zeros = [_zeros(x.type) for x in initial]
            limits = [build.index(n) for n in (0, count, 1)]
            inner, (k, *sums) = _loop(loop, limits, zeros)
            with ir.InsertionPoint(body_of(inner)):
                whole = build.binary("muli", number, build.index(count))
                at = build.binary("addi", whole, k)
                at = build.binary("addi", low, build.binary("muli", at, stride))
            added = [build.binary("addf", a, b) for a, b in zip(totals, inner.results, strict=True)]
            ir.Operation.create("scf.yield", operands=added)
    for old, new in zip(body_of(loop).arguments, (at, *sums), strict=True):
        old.replace_all_uses_with(new)
    for op in operations_of(body_of(loop)):
        body_of(inner).append(op)
    for old, new in zip(loop.results, outer.results, strict=True):
        old.replace_all_uses_with(new)
    step.erase(loop)


def _loop(like: Any, bounds: list[Any], initial: list[Any] | None = None) -> tuple[Any, list[Any]]:
    """Build a loop without operations that carries what another does; return its arguments, too."""
    entering = list(like.operands)[3:] if initial is None else initial
    kinds = [x.type for x in entering]
    made = ir.Operation.create(
        _LOOP,
        results=kinds,
        operands=[*bounds, *entering],
        attributes=named_attributes(like),
        regions=1,
    )
    types = [ir.IndexType.get(), *kinds]
    body = made.regions[0].blocks.append(*types, arg_locs=[like.location] * len(types))
    return made, list(body.arguments)


def _zeros(kind: Any) -> Any:
    """Build a tile of zeros."""
    zero = ir.FloatAttr.get(ir.RankedTensorType(kind).element_type, 0.0)
    return build.make("arith.constant", kind, value=ir.DenseElementsAttr.get_splat(kind, zero))
