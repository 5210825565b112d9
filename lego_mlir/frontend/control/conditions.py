"""Conditions of a kernel: functions that it calls where a truth value holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.frontend.control.loops import truth
from lego_mlir.frontend.control.regions import as_values, call, given_back, matched
from lego_mlir.frontend.trace import current
from lego_mlir.mlir.bindings import ir

_NOTHING = "no arguments, as lambda: 0.0"


def if_(condition: Any) -> Callable[[Callable[[], Any]], None]:
    """Record what the kernel does only where a condition holds.

        @lg.if_(i < n)
        def _():
            y[i] = x[i]

    The function takes and returns nothing, and is traced once. `lg.cond` has results.

    Args:
        condition: a scalar truth value. In a kernel of threads each thread has its own; a barrier
            is for all threads and belongs outside.
    """
    trace = current("if_")
    holds = truth(condition, trace, "the condition of lg.if_")

    def run(body: Callable[[], Any]) -> None:
        location = trace.location()
        op = ir.Operation.create("scf.if", operands=[holds], regions=2, loc=location)
        with trace.inside(op.regions[0].blocks.append()):
            if call(body, [], trace, "the function of lg.if_", "no arguments") is not None:
                raise trace.error(
                    "the function of lg.if_ returns a value",
                    hint="lg.cond(condition, f, g) returns what one of two functions returns",
                )
            ir.Operation.create("scf.yield", loc=location)

    return run


def cond(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Call one of two functions where a condition holds or not, and return its results.

        scale = lg.cond(largest > 0, lambda: 1 / largest, lambda: 0.0)

    Each function is traced once; the kernel runs one of them. `lg.where` takes one of two values
    for each element.

    Args:
        condition: a scalar truth value.
        then: takes nothing; returns a value, a tuple of values, or nothing.
        otherwise: returns values of the same types.

    Raises:
        LegoError: the condition is none, or the functions return values of different types.
    """
    trace = current("cond")
    holds = truth(condition, trace, "the condition of lg.cond")
    location = trace.location()

    def made(results: list[Any]) -> Any:
        return ir.Operation.create(
            "scf.if", results=results, operands=[holds], regions=2, loc=location
        )

    # What the functions return is known only when they have been traced.
    draft = made([])
    blocks = [region.blocks.append() for region in draft.regions]
    with trace.inside(blocks[0]):
        found = call(then, [], trace, "the first function of lg.cond", _NOTHING)
        models = as_values(found, trace, "lg.cond")
        ir.Operation.create("scf.yield", operands=[x.ssa for x in models], loc=location)
    with trace.inside(blocks[1]):
        other = call(otherwise, [], trace, "the second function of lg.cond", _NOTHING)
        returned = matched(other, models, trace, "one function of lg.cond returns")
        ir.Operation.create("scf.yield", operands=returned, loc=location)
    op = made([x.ssa.type for x in models])
    for region, block in zip(op.regions, blocks, strict=True):
        block.append_to(region)
    draft.erase()
    return given_back(models, op.results, one=not isinstance(found, tuple))
