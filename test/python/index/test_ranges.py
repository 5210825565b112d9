"""Intervals of quadratics: exact at both ends where the variable is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.index import Expr, Sym, bounds


@given(st.integers(-5, 5), st.integers(-40, 40), st.integers(-9, 9), st.integers(0, 12))
def test_a_quadratic_in_one_variable_is_exact(a: int, b: int, lo: int, extent: int) -> None:
    x = Sym("x", lo, lo + extent)
    values = [a * v * v + b * v + 3 for v in range(lo, lo + extent + 1)]
    assert bounds(a * x * x + b * x + 3) == (min(values), max(values))


def test_without_a_bound_the_vertex_is_one() -> None:
    x, n = Sym("x"), Sym("n", 1)
    assert bounds(x * x - x) == (0, None)
    assert bounds(x * x - 5 * x) == (-6, None)
    assert bounds(7 - x * x + x) == (None, 7)
    assert bounds(n * n - n) == (0, None)
    assert bounds(n * n + n) == (2, None)
    far = x * x - x * n
    assert isinstance(far, Expr)
    assert bounds(far) == (None, None)


@given(st.integers(-20, 20), st.integers(0, 9), st.integers(-20, 20), st.integers(0, 9))
def test_an_exclusive_or_stays_within_its_bits(p: int, m: int, q: int, n: int) -> None:
    x, y = Sym("x", p, p + m), Sym("y", q, q + n)
    values = [i ^ j for i in range(p, p + m + 1) for j in range(q, q + n + 1)]
    lo, hi = bounds(x ^ y)
    assert lo is not None
    assert hi is not None
    assert lo <= min(values)
    assert hi >= max(values)
    assert (lo >= 0) == (min(values) >= 0)
    assert (hi < 0) == (max(values) < 0)
    ends = (p, p + m, q, q + n)
    assert max(-lo - 1, hi) < 2 * max(*(e if e >= 0 else ~e for e in ends), 1)
    unbounded = Sym("z", 0)
    assert bounds(unbounded ^ x) == (0 if p >= 0 else None, None)
