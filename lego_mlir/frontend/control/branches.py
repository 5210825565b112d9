"""Choices by an index: the range that contains it, and the value or the code for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from lego_mlir.frontend.control.regions import call, given_back
from lego_mlir.frontend.operators import Operand
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value, as_index
from lego_mlir.index import minimum
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.indices.claims import Claim

_EQUAL, _AT_LEAST = 0, 9
"""The predicates `eq` and `uge` of arith.cmpi."""

_NEVER = (1 << 31) - 1
"""The greatest number of a table: no index gets there."""


def segment(number: Operand, sizes: Sequence[int]) -> tuple[Value, Value]:
    """Return which of several consecutive ranges an index is in, and its offset there.

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
    starts = list(accumulate(sizes, initial=0))[:-1]
    which = search(at, len(starts), lambda k: table(k, starts))
    kind = ir.IndexType.get()
    claim = Claim("the number of lg.segment", sum(sizes)).attribute
    limits = {dialect.BOUNDS: dialect.bounds_attribute([max(sizes)]), dialect.CLAIM: claim}
    (inside,) = trace.create("arith.subi", [kind], [at.ssa, table(which, starts).ssa], **limits)
    return which, Value(inside, trace)


def search(number: Operand, count: int, starts: Callable[[Value], Operand]) -> Value:
    """Return the last of several ranges that begins at or before an index, by bisection.

    Args:
        number: an index.
        count: of ranges.
        starts: where the range of a number begins; no range begins before the one in front of it,
            and the first one not behind `number`.
    """
    trace = current("search")
    if type(count) is not int or count < 1:
        raise trace.error(f"a search among {count!r} ranges", hint="one or more")
    at, which = as_index(number, trace), as_index(0, trace)
    step = 1 << (count - 1).bit_length()
    while step > 1:
        step //= 2
        further = minimum(which + step, count - 1)
        start = as_index(starts(further), trace)
        is_here = _compared(_AT_LEAST, at, start, trace)
        which = _selected(is_here, further, which, trace)
    return which


def table(number: Operand, values: Sequence[int]) -> Value:
    """Return an entry of a constant table, which lies in constant memory.

    Args:
        number: an index below the length of the table.
        values: the table: integers from 0 to 2³¹ - 1.
    """
    trace = current("table")
    if not values or any(type(n) is not int or not 0 <= n <= _NEVER for n in values):
        raise trace.error(
            f"{list(values)} is no table of numbers", hint="integers from 0 to 2147483647"
        )
    if len(set(values)) == 1:
        return as_index(values[0], trace)
    index = as_index(number, trace).ssa
    return Value(dialect.table(values, index, trace.here()), trace)


def select(number: Operand, values: Sequence[Operand]) -> Value:
    """Return one of several index values, chosen by an index; all of them are computed.

    Args:
        number: an index below the number of values.
        values: index values.
    """
    trace = current("select")
    if not values:
        raise trace.error("select: there are no values")
    at = as_index(number, trace)
    first, *others = (as_index(x, trace) for x in values)
    for k, other in enumerate(others, start=1):
        is_this = _compared(_EQUAL, at, as_index(k, trace), trace)
        if k == 1:
            claim = Claim("the number of lg.select", len(values))
            is_this = trace.own(is_this)
            is_this.owner.attributes[dialect.CLAIM] = claim.attribute
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
    """Run the function of an index and return its results; each function is traced once.

        x = lg.choose(which, [lambda: a[i, j, :, :], lambda: b[i, j, :, :]])

    Args:
        number: an index below the number of cases.
        cases: functions without arguments; each returns a value, a tuple of values, or nothing,
            and all of them values of the same types. Integers become index values.
    """
    trace = current("choose")
    if not cases:
        raise trace.error("choose: there are no cases")
    if trace.warps is not None:
        raise trace.error(
            "lg.choose is for kernels of threads", hint="on tiles: lg.cond(condition, f, g)"
        )
    operand = as_index(number, trace).ssa
    location = trace.location()
    attributes = {
        "cases": ir.DenseI64ArrayAttr.get(list(range(1, len(cases)))),
        dialect.CLAIM: Claim("the number of lg.choose", len(cases)).attribute,
    }

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
    kinds = [[value.described for value in values] for values in returned]
    for other in kinds[1:]:
        if other != kinds[0]:
            first, found = (", ".join(types) or "nothing" for types in (kinds[0], other))
            raise trace.error(f"choose: one case returns {first}, another one {found}")
    op = made([value.ssa.type for value in returned[0]])
    for region, old in zip(op.regions, draft.regions, strict=True):
        old.blocks[0].append_to(region)
    draft.erase()
    return given_back(returned[0], op.results, one=True)


def _traced(case: Callable[[], Any], region: Any, trace: Trace) -> tuple[Value, ...]:
    """Trace a case inside a region and return its results."""
    with trace.inside(region.blocks.append()):
        found = call(case, [], trace, "a case of lg.choose", "no arguments, as lambda: x")
        several = () if found is None else found if isinstance(found, tuple) else (found,)
        values = tuple(as_index(x, trace) if type(x) is int else x for x in several)
        if not all(isinstance(value, Value) for value in values):
            raise trace.error(f"choose: a case returned {found!r}, no kernel values")
        ir.Operation.create(
            "scf.yield", operands=[value.ssa for value in values], loc=trace.location()
        )
    return values
