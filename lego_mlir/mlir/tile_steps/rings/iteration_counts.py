"""The number of an iteration, counted over a whole kernel: the numbers of a ring's tiles.

    scf.for %t = %lo to %hi step %s { scf.for %i = 0 to %trips { } }

has the number (%t - %lo) / %s * %trips + %i. If %trips depends on %t, or if only the launch knows
%s, the outer loop carries a count:

    scf.for %t ... iter_args(%count = 0) {
      scf.for %i = 0 to %trips { }          %count + %i
      yield %count + %trips
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import body_of, named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import integer, is_inside, operations_of

_LOOP = "scf.for"


def number_of(step: TransformStep, kernel: TileKernel, op: Any, handles: list[Any]) -> Any:
    """Build how often an operation has been executed before, at the insertion point.

    Args:
        step: the transform step.
        kernel: the kernel.
        op: in its body, or in loops.
        handles: loops, in which those that are replaced are exchanged.

    Raises:
        LegoError: the operation is in something else.
    """
    loop: Any = None
    number: Any = None
    trips: Any = None
    loops = list(_around(step, kernel, op))
    for depth, outer in enumerate(loops):
        if not _is_counted_by(outer, loop):
            every = build.index(1)
            if loop is not None:
                with ir.InsertionPoint(loop):
                    every = _product(trips, _trips(loop))
            before = _carry_count(step, handles, loops[depth:], every)
            return before if number is None else build.binary("addi", before, number)
        if loop is None:
            number = _ordinal(outer)
        else:
            trips = _product(trips, _trips(loop))
            number = build.binary("addi", build.binary("muli", _ordinal(outer), trips), number)
        loop = outer
    return build.index(0) if number is None else number


def is_counted(kernel: TileKernel, op: Any) -> bool:
    """Return whether nothing but loops of known strides is around an operation of a kernel."""
    around = op.parent.operation
    while around != kernel.launch and around.name == _LOOP and _has_known_stride(around):
        around = around.parent.operation
    return bool(around == kernel.launch)


def _around(step: TransformStep, kernel: TileKernel, op: Any) -> Iterator[Any]:
    """Yield the loops around an operation, the innermost first.

    Raises:
        LegoError: there is something else.
    """
    around = op.parent.operation
    while around != kernel.launch:
        if around.name != _LOOP:
            raise step.error(
                "counts the iterations of loops, and this one is in an "
                f"'{around.name}', which not every iteration executes",
                op.parent.operation,
                hint="pipeline a loop of the kernel's body, or of a scf.for in it",
            )
        yield around
        around = around.parent.operation


def _product(a: Any | None, b: Any) -> Any:
    return b if a is None else build.binary("muli", a, b)


def _is_counted_by(outer: Any, loop: Any) -> bool:
    """Return whether a loop's variable says how often one in it has run; `None` for no loop in it.

    Its stride is known, and the one in it has the same bounds in each of its iterations.
    """
    if not _has_known_stride(outer):
        return False
    return loop is None or _is_invariant(loop, outer)


def _has_known_stride(loop: Any) -> bool:
    return integer(list(loop.operands)[2]) is not None


def _is_invariant(loop: Any, outer: Any) -> bool:
    """Return whether the bounds of a loop are the same in each iteration of one around it."""
    bounds = list(loop.operands)[:3]
    return all(integer(x) is not None or not is_inside(x, outer) for x in bounds)


def _ordinal(loop: Any) -> Any:
    """Build how many iterations a loop has begun before this one."""
    low, _, stride = list(loop.operands)[:3]
    number = body_of(loop).arguments[0]
    if integer(low) == 0 and integer(stride) == 1:
        return number
    distance = build.binary("subi", number, low)
    return distance if integer(stride) == 1 else build.binary("divui", distance, stride)


def _trips(loop: Any) -> Any:
    """Build how often a loop runs, whose bounds do not cross."""
    low, high, stride = list(loop.operands)[:3]
    span = high if integer(low) == 0 else build.binary("subi", high, low)
    return span if integer(stride) == 1 else build.binary("ceildivui", span, stride)


def _carry_count(step: TransformStep, loops: list[Any], around: Sequence[Any], more: Any) -> Any:
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
