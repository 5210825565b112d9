"""Constant ranges: the interval [lo, hi] that holds every value of an expression.

Intervals are the first and cheapest proof. Symbolic bounds (an index below `M // 128`) are the
prover's business; here a symbol's bound counts with its own interval.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import isqrt

from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import (
    Bits,
    Expr,
    FloorDiv,
    Int,
    Interval,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Mono,
    Mul,
    Poly,
    Sym,
    Where,
    WithForm,
    Xor,
)


def bounds(x: Int) -> Interval:
    """Return the interval of `x`, which is computed once per node."""
    if isinstance(x, int):
        return x, x
    if x._bounds is None:
        object.__setattr__(x, "_bounds", _interval(x))
    assert x._bounds is not None
    return x._bounds


def is_nonnegative(x: Int) -> bool:
    """Return whether the interval alone shows `x >= 0`."""
    lo, _ = bounds(x)
    return lo is not None and lo >= 0


def is_positive(x: Int) -> bool:
    """Return whether the interval alone shows `x > 0`."""
    lo, _ = bounds(x)
    return lo is not None and lo > 0


def of_term(coefficient: int, mono: Mono) -> Interval:
    """Return the interval of `coefficient * mono`."""
    factors = (bounds(atom) for atom, power in mono for _ in range(power))
    scale: Interval = (coefficient, coefficient)
    return reduce(_mul, factors, scale)


class _Ranges(Algebra[Interval]):
    """The interval of each node; `bounds` keeps it in the node itself."""

    def constant(self, x: int) -> Interval:
        return x, x

    def symbol(self, x: Sym) -> Interval:
        return x.lo, None if x.hi is None else bounds(x.hi)[1]

    def poly(self, x: Poly) -> Interval:
        total: Interval = (x.constant, x.constant)
        coefficients = dict(x.terms)
        for mono, coefficient in x.terms:
            match mono:
                case ((atom, 2),) if ((atom, 1),) in coefficients:
                    total = _add(
                        total, _quadratic(coefficient, coefficients[((atom, 1),)], bounds(atom))
                    )
                case ((atom, 1),) if ((atom, 2),) in coefficients:
                    pass  # counted with its square
                case _:
                    total = _add(total, of_term(coefficient, mono))
        return total

    def mul(self, x: Mul) -> Interval:
        return _mul(bounds(x.a), bounds(x.b))

    def floordiv(self, x: FloorDiv) -> Interval:
        num, den = x.num, x.den
        lo, hi = _floordiv(bounds(num), bounds(den))
        if lo == 0 and is_positive(num) and isinstance(num, Sym) and den in num.divisors:
            lo = 1  # an exact quotient of a positive number
        return lo, hi

    def mod(self, x: Mod) -> Interval:
        return _mod(bounds(x.num), bounds(x.den))

    def bits(self, x: Bits) -> Interval:
        lo, hi = bounds(x.x)
        if x.mask >= 0:
            is_less = lo is not None and lo >= 0 and hi is not None and hi < x.mask
            return 0, hi if is_less else x.mask
        return (0, hi) if lo is not None and lo >= 0 else (None, None)

    def xor(self, x: Xor) -> Interval:
        return _xor(bounds(x.a), bounds(x.b))

    def minimum(self, x: Min) -> Interval:
        (alo, ahi), (blo, bhi) = bounds(x.a), bounds(x.b)
        return _least(alo, blo), _tighter(ahi, bhi, min)

    def maximum(self, x: Max) -> Interval:
        (alo, ahi), (blo, bhi) = bounds(x.a), bounds(x.b)
        return _tighter(alo, blo, max), _greatest(ahi, bhi)

    def isqrt(self, x: ISqrt) -> Interval:
        lo, hi = bounds(x.x)
        return isqrt(max(lo or 0, 0)), None if hi is None else isqrt(max(hi, 0))

    def less(self, x: Less) -> Interval:
        return 0, 1

    def where(self, x: Where) -> Interval:
        (alo, ahi), (blo, bhi) = bounds(x.a), bounds(x.b)
        return _least(alo, blo), _greatest(ahi, bhi)


_RANGES = _Ranges()


def _interval(x: Expr) -> Interval:
    return bounds(x.value) if isinstance(x, WithForm) else _RANGES.interpret(x)


def _least(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _greatest(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _tighter(a: int | None, b: int | None, pick: Callable[[list[int]], int]) -> int | None:
    known = [n for n in (a, b) if n is not None]
    return pick(known) if known else None


def _add(a: Interval, b: Interval) -> Interval:
    lo = None if a[0] is None or b[0] is None else a[0] + b[0]
    hi = None if a[1] is None or b[1] is None else a[1] + b[1]
    return lo, hi


def _mul(a: Interval, b: Interval) -> Interval:
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    if None not in a and None not in b:
        corners = [p * q for p in a for q in b if p is not None and q is not None]
        return min(corners), max(corners)
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    if a[1] is not None and a[1] <= 0 and b[0] is not None and b[0] >= 0:
        return None if a[0] is None or b[1] is None else a[0] * b[1], a[1] * b[0]
    if b[1] is not None and b[1] <= 0 and a[0] is not None and a[0] >= 0:
        return _mul(b, a)
    return None, None


def _quadratic(a: int, b: int, x: Interval) -> Interval:
    """Return the interval of `a*x*x + b*x`: its extremes are at the ends or next to the vertex."""
    if a < 0:
        lo, hi = _quadratic(-a, -b, x)
        return (None if hi is None else -hi), (None if lo is None else -lo)
    vertex = -b // (2 * a)
    low, high = x
    near = [v for v in (vertex, vertex + 1) if (low is None or v >= low)]
    near = [v for v in near if high is None or v <= high]
    values = [a * v * v + b * v for v in (*near, low, high) if v is not None]
    return min(values), max(values) if low is not None and high is not None else None


def _floordiv(a: Interval, d: Interval) -> Interval:
    if d[0] is None or d[0] <= 0:
        return None, None
    # The quotient moves towards 0 (or -1) as the divisor grows: each end pairs with the divisor
    # that pushes it outwards.
    lo = hi = None
    if a[0] is not None:
        if a[0] >= 0:
            lo = 0 if d[1] is None else a[0] // d[1]
        else:
            lo = a[0] // d[0]
    if a[1] is not None:
        if a[1] >= 0:
            hi = a[1] // d[0]
        else:
            hi = -1 if d[1] is None else a[1] // d[1]
    return lo, hi


def _mod(a: Interval, d: Interval) -> Interval:
    if d[0] is None or d[0] <= 0:
        return None, None
    hi = None if d[1] is None else d[1] - 1
    if a[0] is not None and a[0] >= 0:
        hi = _tighter(hi, a[1], min)
    return 0, hi


def _xor(a: Interval, b: Interval) -> Interval:
    if None in a or None in b:
        both_nonnegative = a[0] is not None and b[0] is not None and min(a[0], b[0]) >= 0
        return (0 if both_nonnegative else None), None
    ends = [n for n in (*a, *b) if n is not None]
    top = 1 << max(n.bit_length() if n >= 0 else (~n).bit_length() for n in ends)
    signs = {(x < 0) != (y < 0) for x in ends[:2] for y in ends[2:]}  # of the result
    return -top if True in signs else 0, top - 1 if False in signs else -1
