"""Loops of a kernel: over numbers, and while a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lego_mlir.frontend.control.regions import as_values, bound, call, given_back, matched
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.trace import Trace, current, user_location
from lego_mlir.frontend.values import Value, as_index
from lego_mlir.mlir.bindings import ir

_NEXT = "the function returns the values for the next iteration, of the same types"
_CARRIED = "one parameter for each value that the loop carries"


def loop(stop: Operand, *, start: Operand = 0, step: Operand = 1) -> Iterator[Value]:
    """Record a loop of the kernel, `for i in lg.loop(n): ...`, whose body is traced once.

    Python's own `range` runs at trace time instead, and so unrolls. The body must run to its end:
    there is no `break` out of a traced loop.

    Args:
        stop: where the numbers end, exclusive.
        start: the first number.
        step: from one number to the next, positive.
    """
    trace = current("loop")
    bounds = _bounds(start, stop, step, trace)
    index = ir.IndexType.get()
    location = trace.location()
    op = ir.Operation.create("scf.for", operands=bounds, regions=1, loc=location)
    body = op.regions[0].blocks.append(index, arg_locs=[location])
    finished = False
    try:
        with trace.inside(body):
            yield Value(body.arguments[0], trace)
            ir.Operation.create("scf.yield", loc=location)
        finished = True
    finally:
        if not finished and trace.left_loop is None:
            trace.left_loop = user_location()


def fold(
    stop: Operand, initial: Any, *, start: Operand = 0, step: Operand = 1
) -> Callable[[Callable[..., Any]], Any]:
    """Record a loop of the kernel that carries values from one iteration to the next.

        @lg.fold(steps, lg.zeros((128, 128), "f32"))
        def total(k, total):
            return lg.dot(a[m, k, :, :], b[k, n, :, :], total)

    The function is the body, traced once: it takes the loop index and the carried values, and
    returns the values for the next iteration. After decoration its name is what the last iteration
    returned, or `initial` if there was no iteration.

    Args:
        stop: where the numbers end, exclusive.
        initial: a value, or a tuple of values: then the body takes and returns as many. A float is
            a value of f32, an integer an index.
        start: the first number.
        step: from one number to the next, positive.
    """
    trace = current("fold")
    carried = as_values(initial, trace, "a loop")

    def run(body: Callable[..., Any]) -> Any:
        bounds = _bounds(start, stop, step, trace)
        kinds = [value.ssa.type for value in carried]
        location = trace.location()
        op = ir.Operation.create(
            "scf.for",
            results=kinds,
            operands=[*bounds, *(value.ssa for value in carried)],
            regions=1,
            loc=location,
        )
        types = [ir.IndexType.get(), *kinds]
        block = op.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
        with trace.inside(block):
            number = Value(block.arguments[0], trace)
            arguments = [number, *bound(block, carried, 1)]
            what, takes = "the function of lg.fold", f"the index, and {_CARRIED}"
            found = call(body, arguments, trace, what, takes)
            returned = matched(found, carried, trace, "the loop carries", _NEXT)
            ir.Operation.create("scf.yield", operands=returned, loc=location)
        return given_back(carried, op.results, one=not isinstance(initial, tuple))

    return run


def while_(condition: Callable[..., Any], initial: Any) -> Callable[[Callable[..., Any]], Any]:
    """Record a loop of the kernel that runs while a condition on what it carries holds.

        @lg.while_(lambda x, steps: (x > 1) & (steps < 100), (start, 0))
        def collatz(x, steps):
            return lg.where(x % 2 == 0, x // 2, 3 * x + 1), steps + 1

    Condition and function are traced once. After decoration the function's name is what the loop
    carries when the condition is false for the first time.

    Args:
        condition: takes the carried values and returns a scalar truth value.
        initial: a value, or a tuple of values, as `fold` has it.

    Raises:
        LegoError: the condition is none, or the body returns values of other types.
    """
    trace = current("while_")
    carried = as_values(initial, trace, "a loop")

    def run(body: Callable[..., Any]) -> Any:
        kinds = [value.ssa.type for value in carried]
        location = trace.location()
        op = ir.Operation.create(
            "scf.while",
            results=kinds,
            operands=[value.ssa for value in carried],
            regions=2,
            loc=location,
        )
        before, after = (
            region.blocks.append(*kinds, arg_locs=[location] * len(kinds)) for region in op.regions
        )
        with trace.inside(before):
            what = "the condition of lg.while_"
            met = call(condition, bound(before, carried), trace, what, _CARRIED)
            holds = truth(met, trace, "the condition of a loop")
            operands = [holds, *before.arguments]
            ir.Operation.create("scf.condition", operands=operands, loc=location)
        with trace.inside(after):
            what = "the function of lg.while_"
            found = call(body, bound(after, carried), trace, what, _CARRIED)
            returned = matched(found, carried, trace, "the loop carries", _NEXT)
            ir.Operation.create("scf.yield", operands=returned, loc=location)
        return given_back(carried, op.results, one=not isinstance(initial, tuple))

    return run


def truth(x: Any, trace: Trace, what: str) -> Any:
    """Return a scalar truth value as an SSA value.

    Raises:
        LegoError: it is none.
    """
    (value,) = as_values(x, trace, what) if not isinstance(x, tuple) else (x,)
    if not isinstance(value, Value) or value.shape or value.dtype != "i1":
        shown = value.described if isinstance(value, Value) else repr(value)
        raise trace.error(
            f"{what} is one truth value, not {shown}",
            hint="comparisons give truth values; lg.any(x) and lg.all(x) combine those of a tile",
        )
    return value.ssa


def _bounds(start: Operand, stop: Operand, step: Operand, trace: Trace) -> list[Any]:
    """Return the operands of a loop."""
    if isinstance(step, int) and step < 1:
        raise trace.error(
            f"the step of a loop is a positive number, not {step}",
            hint="to count down from n, use n - 1 - i",
        )
    return [as_index(x, trace).ssa for x in (start, stop, step)]
