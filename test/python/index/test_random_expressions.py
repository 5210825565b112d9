"""Random expressions: what the rules make of a tree of operators equals the tree, everywhere.

A tree is drawn as nested tuples and used twice: computed directly with NumPy, which is the truth,
and built with the operators of `lego_mlir.index`, which simplify on the way. A rule applied
without its condition, a wrong interval or a false proof shows as a point where the two differ.
"""

from __future__ import annotations

import os
import pickle
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lego_mlir.index import (
    Expr,
    Int,
    Sym,
    bounds,
    evaluate,
    isqrt,
    maximum,
    minimum,
    substitute,
    symbols,
    where,
)
from lego_mlir.index.extraction.factor import Product, Sum, factor
from lego_mlir.index.nodes import Poly
from lego_mlir.index.proofs import prover
from lego_mlir.index.structure import children
from lego_mlir.index.sympy_bridge import from_sympy, to_sympy
from lego_mlir.index.text import to_text

EXAMPLES = settings(max_examples=int(os.environ.get("LEGO_TEST_EXAMPLES", "250")))
POINTS = 1500
SIZES = ("K", "M", "B")
INDICES = ("i", "j", "b", "x")
OPERATORS = st.sampled_from(
    [
        "+",
        "+",
        "-",
        "*",
        "*",
        "//",
        "//",
        "%",
        "%",
        "^",
        "&",
        "|",
        "~",
        "min",
        "max",
        "isqrt",
        "<",
        "<=",
        "where",
    ]
)


@lru_cache
def environment(seed: int) -> tuple[dict[str, Sym], dict[str, np.ndarray]]:
    """Symbols with facts, and points at which the facts hold: every one if they are few."""
    rng = np.random.default_rng(seed)
    lo = int(rng.integers(-20, 10))
    hi = lo + int(rng.integers(0, 25))
    step = int(rng.choice([2, 4, 8, 3]))
    k = Sym("K", 1, 4 if seed % 2 else None)
    m = Sym("M", 1, 12 if seed % 3 else None, frozenset({k}))
    syms = {
        "K": k,
        "M": m,
        "B": Sym("B", step, None, frozenset({step})),
        "i": Sym("i", lo, hi),
        "j": Sym("j", 0, m - 1),
        "b": Sym("b", 0, m // k - 1),
        "x": Sym("x"),
    }
    points = [
        (kv, kv * t, step * s, i, j, b, x)
        for kv, t, s in product(range(1, 5), range(1, 4), (1, 2, 3))
        for i in sorted({lo, hi, *rng.integers(lo, hi + 1, 3).tolist()})
        for j in sorted({0, kv * t - 1, kv * t // 2})
        for b in range(t)
        for x in (-37, -8, -1, 0, 1, 6, 64)
    ]
    chosen = rng.choice(len(points), min(POINTS, len(points)), replace=False)
    table = np.array([points[c] for c in chosen], dtype=np.int64)
    return syms, {name: table[:, c] for c, name in enumerate((*SIZES, *INDICES))}


@st.composite
def divisors(draw: st.DrawFn) -> tuple[Any, ...]:
    """Something that is never zero: a constant of either sign, sizes and their products."""
    constants = st.sampled_from([2, 3, 4, 5, 6, 8, 12, 16, 24, 64, -1, -3, -8])
    size = st.sampled_from([("sym", name) for name in SIZES])
    kind = draw(st.integers(0, 3))
    if kind < 2:
        return ("int", draw(constants))
    if kind == 2:
        return draw(size)
    return ("*", draw(size), draw(st.one_of(constants.map(lambda c: ("int", c)), size)))


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> tuple[Any, ...]:
    if depth == 0 or draw(st.integers(0, 6)) == 0:
        if draw(st.booleans()):
            return ("sym", draw(st.sampled_from(INDICES + SIZES)))
        return ("int", draw(st.sampled_from([0, 1, 2, 3, 6, 8, 18, 32, 64, -1, -5, -12])))
    op = draw(OPERATORS)
    below = trees(depth - 1)
    if op in ("//", "%"):
        return (op, draw(below), draw(divisors()))
    if op == "isqrt":
        return (op, ("max", draw(below), ("int", 0)))
    if op == "~":
        return (op, draw(below))
    if op == "where":
        return (op, draw(conditions(depth - 1)), draw(below), draw(below))
    return (op, draw(below), draw(below))


@st.composite
def conditions(draw: st.DrawFn, depth: int) -> tuple[Any, ...]:
    """A comparison, or several of them with connectives between."""
    if depth > 0 and draw(st.booleans()):
        connective = draw(st.sampled_from(["&", "|", "^"]))
        return (connective, draw(conditions(depth - 1)), draw(conditions(depth - 1)))
    return (draw(st.sampled_from(["<", "<="])), draw(trees(depth)), draw(trees(depth)))


def compute(tree: tuple[Any, ...], values: dict[str, np.ndarray]) -> np.ndarray:
    """The truth: NumPy, operator by operator; too large numbers are not of interest here."""
    op, *args = tree
    if op == "sym":
        return values[args[0]]
    if op == "int":
        return np.full(len(values["x"]), args[0], dtype=np.int64)
    a = [compute(arg, values) for arg in args]
    match op:
        case "+":
            result = a[0] + a[1]
        case "-":
            result = a[0] - a[1]
        case "*":
            result = a[0] * a[1]
        case "//":
            result = np.floor_divide(a[0], a[1])
        case "%":
            result = np.mod(a[0], a[1])
        case "^":
            result = np.bitwise_xor(a[0], a[1])
        case "&":
            result = np.bitwise_and(a[0], a[1])
        case "|":
            result = np.bitwise_or(a[0], a[1])
        case "~":
            result = np.bitwise_not(a[0])
        case "min":
            result = np.minimum(a[0], a[1])
        case "max":
            result = np.maximum(a[0], a[1])
        case "<":
            result = (a[0] < a[1]).astype(np.int64)
        case "<=":
            result = (a[0] <= a[1]).astype(np.int64)
        case "where":
            result = np.where(a[0] != 0, a[1], a[2])
        case "isqrt":
            result = np.array([int(n**0.5) for n in a[0].tolist()], dtype=np.int64)
    assume(np.abs(result).max() < 1 << 31)
    return result


def build(tree: tuple[Any, ...], syms: dict[str, Sym]) -> Int:
    """The same by the operators of index expressions, simplified at every step."""
    op, *args = tree
    if op in ("sym", "int"):
        return syms[args[0]] if op == "sym" else args[0]
    a = [build(arg, syms) for arg in args]
    match op:
        case "+":
            return a[0] + a[1]
        case "-":
            return a[0] - a[1]
        case "*":
            return a[0] * a[1]
        case "//":
            return a[0] // a[1]
        case "%":
            return a[0] % a[1]
        case "^":
            return a[0] ^ a[1]
        case "&":
            return a[0] & a[1]
        case "|":
            return a[0] | a[1]
        case "~":
            return ~a[0]
        case "<":
            return (a[0] < a[1]) * 1
        case "<=":
            return (a[0] <= a[1]) * 1
        case "min":
            return minimum(a[0], a[1])
        case "max":
            return maximum(a[0], a[1])
        case "where":
            return where(a[0], a[1], a[2])
    return isqrt(a[0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Int, np.ndarray, dict[str, np.ndarray], dict[str, Sym]]:
    """A simplified expression, its true values, the points, and the symbols."""
    tree = draw(trees())
    syms, values = environment(draw(st.integers(0, 11)))
    truth = compute(tree, values)
    return build(tree, syms), truth, values, syms


def everywhere(x: Any, values: dict[str, np.ndarray]) -> np.ndarray:
    return np.broadcast_to(np.asarray(evaluate(x, values)), values["x"].shape)


@EXAMPLES
@given(cases())
def test_simplification_keeps_the_value(case) -> None:
    x, truth, values, _ = case
    assert (everywhere(x, values) == truth).all(), to_text(x)


@EXAMPLES
@given(cases())
def test_bounds_hold_every_value(case) -> None:
    x, truth, _, _ = case
    lo, hi = bounds(x)
    assert lo is None or lo <= truth.min()
    assert hi is None or truth.max() <= hi


@EXAMPLES
@given(cases(), cases())
def test_the_prover_never_proves_what_has_a_counterexample(one, other) -> None:
    x, truth, values, syms = one
    if prover.is_nonnegative(x):
        assert (truth >= 0).all()
    if prover.is_nonnegative(-1 * x):
        assert (truth <= 0).all()
    for bound in (syms["M"], syms["K"] * syms["B"], 8, other[0]):
        if bound is other[0] and other[3] is not syms:
            continue
        top = everywhere(bound, values)
        if prover.is_less(x, bound):
            assert (truth < top).all()
        if prover.is_within(x, bound):
            assert ((truth >= 0) & (truth < top)).all()


def value_of(tree: Any, values: dict[str, np.ndarray]) -> Any:
    match tree:
        case Sum(terms):
            return sum(sign * value_of(t, values) for sign, t in terms)
        case Product(factors):
            result: Any = 1
            for f in factors:
                result = result * value_of(f, values)
            return result
    return evaluate(tree, values)


def polynomials(x: Int) -> list[Poly]:
    if isinstance(x, int):
        return []
    return [x] * isinstance(x, Poly) + [p for c in children(x) for p in polynomials(c)]


@EXAMPLES
@given(cases())
def test_factoring_keeps_the_value(case) -> None:
    x, _, values, _ = case
    for poly in polynomials(x):
        assert (value_of(factor(poly), values) == evaluate(poly, values)).all(), repr(poly)


@EXAMPLES
@given(cases())
def test_text_is_python_for_the_value(case) -> None:
    x, truth, values, _ = case
    code = compile(to_text(x), "text", "eval")
    for at in range(0, len(truth), len(truth) // 8):
        point = {name: int(column[at]) for name, column in values.items()}
        assert eval(code, {"isqrt": isqrt, "where": where}, point) == truth[at]  # noqa: S307


@EXAMPLES
@given(cases())
def test_sympy_and_back_keeps_the_value(case) -> None:
    x, truth, values, syms = case
    there: dict[Sym, Any] = {}
    for s in symbols(x):
        there[s] = to_sympy(s)
    back = from_sympy(to_sympy(x, there), {there[s]: s for s in there})
    assert (everywhere(back, values) == truth).all()
    assert symbols(back) <= symbols(x)
    assert set(syms.values()) >= symbols(back)


@EXAMPLES
@given(cases())
def test_pickling_keeps_identity(case) -> None:
    x = case[0]
    assert pickle.loads(pickle.dumps(x)) is x or isinstance(x, int)  # noqa: S301


@EXAMPLES
@given(cases(), st.data())
def test_substitution_is_evaluation(case, data: st.DataObject) -> None:
    """All symbols at once give the number; some of them give an expression of the others."""
    x, truth, values, syms = case
    at = data.draw(st.integers(0, len(truth) - 1))
    point = {name: int(column[at]) for name, column in values.items()}
    assert substitute(x, {syms[name]: n for name, n in point.items()}) == truth[at]
    some = data.draw(st.sets(st.sampled_from(sorted(point))))
    rest = substitute(x, {syms[name]: point[name] for name in some})
    assert evaluate(rest, point) == truth[at]
    assert symbols(rest) <= {s for name, s in syms.items() if name not in some}


@EXAMPLES
@given(cases())
def test_building_again_gives_the_same_node(case) -> None:
    """Hash-consing: the same operations in the same order are the same object."""
    x, truth, values, _ = case
    if isinstance(x, Expr):
        again = substitute(x, {})
        assert (everywhere(again, values) == truth).all()
        assert repr(again) == repr(substitute(again, {}))
