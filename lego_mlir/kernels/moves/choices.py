"""Choices by a number of the kernel among a few constants or functions, whichever way is short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row

_SELECTED = 4
"""So many numbers are chosen by comparisons; more are in a table."""

_TABLE = 1 << 31
"""Numbers of a table are below this."""

_EXACT_BITS = 30
"""Bits of an index whose product with a reciprocal has less than 64, and reciprocals of a table."""


def range_of(at: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Return which of several ranges behind one another an index is in, and where in it."""
    if len(sizes) > _SELECTED:
        return lg.segment(at, sizes)
    which, inside, start = at * 0, at, 0
    for k, size in enumerate(sizes[:-1], start=1):
        start += size
        is_behind = at >= start
        which = lg.where(is_behind, k, which)
        inside = lg.where(is_behind, at - start, inside)
    return which, inside if len(sizes) == 1 else inside.below(max(sizes))


def number_of(which: Any, numbers: Sequence[int]) -> Any:
    """Return one of several numbers: a Python integer if they are all the same."""
    if len(set(numbers)) == 1:
        return numbers[0]
    if isinstance(which, int):
        return numbers[which]
    if len(numbers) > _SELECTED and min(numbers) >= 0 and max(numbers) < _TABLE:
        return lg.table(which, numbers)
    return lg.select(which, numbers)


def divided(which: Any, number: Any, most: int, divisors: Sequence[int]) -> tuple[Any, Any]:
    """Return the quotient of an index by one of several numbers, and the remainder.

    A division by a number that is chosen at run time takes long. So this multiplies by the
    reciprocal, rounded up, which is exact up to `most` (T. Granlund and P. L. Montgomery, Division
    by invariant integers using multiplication, PLDI 1994, theorem 4.2).

    Args:
        which: of the numbers.
        number: an index, from 0 on.
        most: what it is at most.
        divisors: positive numbers.
    """
    layouts = [OrderBy(Row(most // n + 1, n)) for n in divisors]
    if len(set(divisors)) == 1:
        return layouts[0].inv(number)
    bits = most.bit_length()
    if bits > _EXACT_BITS:
        found: tuple[Any, Any] = call_of(which, [partial(x.inv, number) for x in layouts])
        return found
    shifts = [bits + n.bit_length() for n in divisors]
    reciprocals = [-(-(1 << shift) // n) for shift, n in zip(shifts, divisors, strict=True)]
    factor, shift = (_integer(number_of(which, each)) for each in (reciprocals, shifts))
    quotient = ((number.to("i64") * factor) >> shift).below(most // min(divisors) + 1)
    return quotient, (number - quotient * number_of(which, divisors)).below(max(divisors))


def _integer(x: Any) -> Any:
    return x if isinstance(x, int) else x.to("i64")


def call_of(which: Any, functions: Sequence[Callable[[], Any]]) -> Any:
    """Run one of several functions, and return what it returns."""
    if isinstance(which, int):
        return functions[which]()
    return functions[0]() if len(functions) == 1 else lg.choose(which, functions)


def holds(which: Any, truths: Sequence[bool]) -> Any:
    """Return one of several truth values: Python's if they are all the same."""
    if len(set(truths)) == 1:
        return truths[0]
    if isinstance(which, int):
        return truths[which]
    return number_of(which, [int(t) for t in truths]) > 0
