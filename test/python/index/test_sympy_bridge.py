"""SymPy expressions in and out, and what SymPy's own printers make of ours."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sympy

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate, isqrt, maximum, minimum, where
from lego_mlir.index.sympy_bridge import (
    FloorDiv,
    ISqrt,
    Less,
    Mod,
    Where,
    Xor,
    from_sympy,
    to_sympy,
)

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
    f = sympy.lambdify([names[X], names[Y]], to_sympy(x, names))
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
    ("x", "message"),
    [
        (P / 2, "'p/2' is not known to be an integer"),
        (sympy.Rational(1, 2), "not known to be an integer"),
        (1 / P, "not known to be an integer"),
        (P / 2 + Q, "'p/2 [+] q' is not known to be an integer"),
        (sympy.Piecewise((2 * P + 1, P < Q), (2 * Q, True)) / 2, "not known to be an integer"),
        (sympy.Max(2 * P, Q) / 2, "not known to be an integer"),
        (2**P, "no integer power"),
        (sympy.sqrt(P), "no integer power"),
        (P**1000, "too large"),
        (sympy.sin(P), "'sin[(]p[)]' is not an integer index expression"),
        (sympy.sin(P) + 1, "'sin[(]p[)]' in 'sin[(]p[)] [+] 1' is not an integer"),
        (sympy.Float(1.5), "not an integer index expression"),
        (sympy.oo, "not an integer index expression"),
        (sympy.Piecewise((P, P < Q)), "has no value where none of its conditions holds"),
        (sympy.Symbol("r", integer=False), "a symbol that is no integer"),
        (P + sympy.Dummy("p"), "two different symbols"),
        ("p", "not an integer index expression"),
    ],
    ids=str,
)
def test_what_is_no_integer_expression_is_an_error(x, message) -> None:
    with pytest.raises(LegoError, match=message):
        from_sympy(x)


@pytest.mark.parametrize(
    "x",
    [
        P * (P + 1) / 2,
        sympy.Piecewise((-4, P > 2), (2 * P, True)) / 2 + Q,
        sympy.Piecewise((P * (P + 1), P < Q), (4, True)) / 2,
        sympy.Max(2 * P, 4 * Q) / 2,
        sympy.Min(3 * P, 6 * Q, 9) * (Q + 1) / 3,
    ],
    ids=str,
)
def test_quotients_that_are_exact_for_every_value(x) -> None:
    for p, q in ((0, 0), (3, 5), (8, 1)):
        found = evaluate(from_sympy(x), {"p": p, "q": q})
        assert found == x.subs({P: p, Q: q})


# ---------------------------------------------------------- what SymPy does with the functions
def test_derivatives_are_those_between_the_steps() -> None:
    layout = OrderBy(Row(128, 64)).TileBy([16, 4], [8, 16])
    ti, tj, i, j = sympy.symbols("ti tj i j", integer=True, nonnegative=True)
    offset = layout.apply(ti, tj, i, j)
    assert [offset.diff(x) for x in (ti, tj, i, j)] == [8 * 64, 16, 64, 1]
    assert FloorDiv(P, 4).diff(P) == 0
    assert (Mod(P, Q) + 3 * P).diff(P) == 4
    assert Mod(P, Q).diff(Q) == -FloorDiv(P, Q)
    assert Where(Less(P, 3), 2 * P, 5 * P).subs(P, 7).diff(P) == 0
    assert Where(Less(P, 3), 2 * P, 5 * P).diff(P).subs(P, 7) == 5
    assert Xor(P, Q).diff(P).has(sympy.Derivative)


def test_sizes_of_sympys_state_what_divides_them() -> None:
    """The paper's own example: quotients in a size are exact."""
    m, k, bm, bk = sympy.symbols("M K BM BK", integer=True, positive=True)
    layout = OrderBy(Row(m, k)).TileBy([m / bm, k / bk], [bm, bk])
    assert layout.text == "OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK])"
    index = sympy.symbols("t u i j", integer=True, nonnegative=True)
    offset = layout.apply(*index)
    assert offset.free_symbols == {k, bm, bk, *index}
    sizes = {m: 64, k: 48, bm: 16, bk: 8}
    at = dict(zip(index, (2, 3, 5, 7), strict=True))
    assert offset.subs({**sizes, **at}) == layout.bind(M=64, K=48, BM=16, BK=8).apply(2, 3, 5, 7)
    flat = sympy.Symbol("f", integer=True, nonnegative=True)
    back = [int(x.subs({**sizes, flat: 1771})) for x in layout.inv(flat)]
    assert back == list(layout.bind(M=64, K=48, BM=16, BK=8).inv(1771))
    assert layout.apply(m / bm - 1, 0, 0, 0).subs(sizes) == (64 - 16) * 48
    rounded = OrderBy(Row(m, k)).TileBy([sympy.ceiling(m / bm), k / bk], [bm, bk])
    assert rounded.text == "OrderBy(Row(M, K)).TileBy([ceildiv(M, BM), K/BK], [BM, BK])"


def test_c_rounds_down_whatever_the_sign(tmp_path: Path) -> None:
    """A C compiler runs what SymPy's C printer writes."""
    expressions = [FloorDiv(P, 4), Mod(P, 4), FloorDiv(P, Q), Mod(P, Q), Xor(P, Q), Less(P, Q)]
    expressions += [Where(Less(P, Q), P, 5 * Q), 3 * FloorDiv(P + 1, 3) - Mod(2 * P, 5)]
    natural = sympy.Symbol("p", integer=True, nonnegative=True)
    assert sympy.ccode(FloorDiv(natural, 4)) == "(p / 4)"
    assert sympy.ccode(Mod(natural, 4)) == "(p % 4)"
    points = [(-7, 3), (7, -3), (-7, -3), (-8, 4), (0, 5), (9, 2)]
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    text = "#include <stdio.h>\nint main(void) {\n"
    for p, q in points:
        values = ", ".join(f"(long)({sympy.ccode(e)})" for e in expressions)
        formats = " ".join(["%ld"] * len(expressions))
        text += f'  {{ long p = {p}, q = {q}; printf("{formats}\\n", {values}); }}\n'
    (tmp_path / "f.c").write_text(text + "}\n")
    subprocess.run([compiler, "f.c", "-o", "f"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "f"], capture_output=True, text=True, check=True).stdout
    truth = [[int(e.subs({P: p, Q: q})) for e in expressions] for p, q in points]
    assert [list(map(int, line.split())) for line in printed.splitlines()] == truth


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_python_code_computes_the_same(x) -> None:
    code = sympy.pycode(to_sympy(x))
    for a, b in ((0, 1), (7, 3), (40, 9)):
        names = {"x": a, "y": b, "math": math, "min": min, "max": max}
        assert eval(code, names) == evaluate(x, {"x": a, "y": b})  # noqa: S307


def test_latex_shows_the_functions_as_mathematics() -> None:
    assert sympy.latex(FloorDiv(P, Q)) == r"\left\lfloor \frac{p}{q} \right\rfloor"
    assert sympy.latex(Mod(P, 4) ** 2) == r"\left(\left(p \bmod 4\right)\right)^{2}"
