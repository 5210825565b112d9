"""Where blocks do different things: which range a number is in, and what goes with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Operand, Value, as_index
from lego_mlir.mlir.bindings import ir

_EQUAL, _AT_LEAST = 0, 9
"""The predicates `eq` and `uge` of arith.cmpi."""


def segment(number: Operand, sizes: Sequence[int]) -> tuple[Value, Value]:
    """Which of several ranges, one behind the other, a number is in, and where in that range.

    Args:
        number: an index below the sum of the sizes.
        sizes: of the ranges.

    Returns:
        The number of the range, and the distance from its start.
    """
    trace = current("segment")
    if not sizes or any(type(n) is not int or n < 1 for n in sizes):
        raise trace.error(f"{list(sizes)} are no sizes of ranges", hint="positive integers")
    at = as_index(number, trace)
    which, start = as_index(0, trace), as_index(0, trace)
    for k in range(1, len(sizes)):
        here = as_index(sum(sizes[:k]), trace)
        is_here = _compared(_AT_LEAST, at, here, trace)
        which = _selected(is_here, as_index(k, trace), which, trace)
        start = _selected(is_here, here, start, trace)
    return which, at - start


def select(number: Operand, values: Sequence[Operand]) -> Value:
    """The index value of a number, out of several that are computed all the same.

    Args:
        number: an index; any that is no value's stands for the first one.
        values: index values.
    """
    trace = current("select")
    if not values:
        raise trace.error("select: there are no values")
    at = as_index(number, trace)
    first, *others = (as_index(x, trace) for x in values)
    for k, other in enumerate(others, start=1):
        is_this = _compared(_EQUAL, at, as_index(k, trace), trace)
        first = _selected(is_this, other, first, trace)
    return first


def _compared(predicate: int, a: Value, b: Value, trace: Trace) -> Any:
    which = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    i1 = ir.IntegerType.get_signless(1)
    return trace.create("arith.cmpi", [i1], [a.ssa, b.ssa], predicate=which)[0]


def _selected(condition: Any, a: Value, b: Value, trace: Trace) -> Value:
    kind = ir.IndexType.get()
    return Value(trace.create("arith.select", [kind], [condition, a.ssa, b.ssa])[0], trace)


def choose(number: Operand, cases: Sequence[Callable[[], Any]]) -> Any:
    """What the function of a number does and returns; each is traced once, one of them runs.

        x = lg.choose(which, [lambda: a[i, j, :, :], lambda: b[i, j, :, :]])

    Args:
        number: an index; any that is no number of a case stands for the first one.
        cases: functions without arguments; each returns a value, a tuple of values, or nothing,
            and all of them values of the same types. Integers become index values.
    """
    trace = current("choose")
    if not cases:
        raise trace.error("choose: there are no cases")
    operand = as_index(number, trace).ssa
    location = trace.location()
    attributes = {"cases": ir.DenseI64ArrayAttr.get(list(range(1, len(cases))))}

    def made(results: Sequence[Any]) -> Any:
        return ir.Operation.create(
            "scf.index_switch",
            results=list(results),
            operands=[operand],
            attributes=attributes,
            regions=len(cases),
            loc=location,
        )

    # What the cases return is known only when they have been traced.
    draft = made([])
    returned = [_traced(case, draft.regions[k], trace) for k, case in enumerate(cases)]
    kinds = [[value.ssa.type for value in values] for values in returned]
    for other in kinds[1:]:
        if other != kinds[0]:
            first, found = (", ".join(map(str, types)) or "nothing" for types in (kinds[0], other))
            raise trace.error(f"choose: one case returns {first}, another one {found}")
    op = made(kinds[0])
    for region, old in zip(op.regions, draft.regions, strict=True):
        old.blocks[0].append_to(region)
    draft.erase()
    values = tuple(Value(x, trace) for x in op.results)
    return values[0] if len(values) == 1 else values or None


def _traced(case: Callable[[], Any], region: Any, trace: Trace) -> tuple[Value, ...]:
    """What a case returns, after its operations have joined a region."""
    with ir.InsertionPoint(region.blocks.append()):
        found = case()
        several = () if found is None else found if isinstance(found, tuple) else (found,)
        values = tuple(as_index(x, trace) if type(x) is int else x for x in several)
        if not all(isinstance(value, Value) for value in values):
            raise trace.error(f"choose: a case returned {found!r}, no kernel values")
        ir.Operation.create(
            "scf.yield", operands=[value.ssa for value in values], loc=trace.location()
        )
    return values
