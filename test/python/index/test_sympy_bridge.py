"""SymPy expressions in and out, and what SymPy's own printers make of ours."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate, isqrt, maximum, minimum, where
from lego_mlir.index.sympy_bridge import FloorDiv, ISqrt, Less, Mod, Where, from_sympy, to_sympy

X, Y = Sym("x", 0, 40), Sym("y", 1, 9)
P, Q = sympy.symbols("p q", integer=True)

EXPRESSIONS = [
    X * Y * 3 - Y + 2,
    X // Y + (X % Y) * 5,
    (X ^ Y) + (X < Y) * 1,
    (X < 20) + (Y < 5),
    -(X < Y) + 7,
    minimum(X, Y) - maximum(X, 2 * Y),
    where(X < Y, X // 3, isqrt(X + Y)),
]
GRID = np.meshgrid(np.arange(41), np.arange(1, 10), indexing="ij")


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_lambdify_computes_the_same(x) -> None:
    """On whole arrays: comparisons must be numbers there, as NumPy adds booleans as `or`."""
    names = {s: sympy.Symbol(s.name, integer=True) for s in (X, Y)}
    f = sympy.lambdify([names[X], names[Y]], to_sympy(x, names), [{"isqrt": isqrt}, "numpy"])
    truth = evaluate(x, {"x": GRID[0], "y": GRID[1]})
    assert (f(*GRID) == truth).all()


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_substituting_numbers_in_sympy_computes_the_same(x) -> None:
    names = {s: sympy.Symbol(s.name, integer=True) for s in (X, Y)}
    for a, b in ((0, 1), (7, 3), (40, 9)):
        got = to_sympy(x, names).subs({names[X]: a, names[Y]: b})
        assert got == evaluate(x, {"x": a, "y": b})


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_there_and_back_is_the_same_node(x) -> None:
    names = {s: sympy.Symbol(s.name, integer=True) for s in (X, Y)}
    assert from_sympy(to_sympy(x, names), {v: s for s, v in names.items()}) is x


def test_an_expression_stands_in_a_sympy_expression() -> None:
    assert sympy.sympify(X // 3) + P == FloorDiv(to_sympy(X), 3) + P


def test_assumptions_follow_the_range() -> None:
    assert to_sympy(Y).is_positive
    assert to_sympy(X).is_nonnegative
    assert not to_sympy(X).is_positive
    assert to_sympy(Sym("z")).is_nonnegative is None
    assert from_sympy(sympy.Symbol("n", integer=True, positive=True)) is Sym("n", 1)


def test_sympys_own_division_and_remainder_are_understood() -> None:
    p, q = Sym("p"), Sym("q")
    assert from_sympy(sympy.floor(P / 4)) is p // 4
    assert from_sympy(sympy.floor((P + 2 * Q) / 6)) is (p + 2 * q) // 6
    assert from_sympy(sympy.Mod(P, 4)) is p % 4
    assert from_sympy(sympy.Min(P, Q)) is minimum(p, q)
    assert evaluate(from_sympy(sympy.Max(P, Q, 3)), {"p": 1, "q": 2}) == 3
    assert from_sympy(P**3) is p * p * p


def test_numbers_are_computed_at_once() -> None:
    assert FloorDiv(-7, 2) == -4
    assert Mod(-7, 4) == 1
    assert Less(2, 3) == 1
    assert Where(0, 5, 6) == 6
    assert ISqrt(10**18 - 1) == 10**9 - 1
    assert FloorDiv(P, 0).func is FloorDiv  # left standing, as SymPy does


@pytest.mark.parametrize(
    "x", [P / 2, sympy.sin(P), sympy.Rational(1, 2), sympy.Float(1.5), P**-1, 2**P, P < Q], ids=str
)
def test_a_non_integer_expression_is_an_error(x) -> None:
    with pytest.raises(LegoError, match="not an integer index expression"):
        from_sympy(x)
