"""SymPy expressions as operations: what they compute is SymPy's own evaluation."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import emitted
import numpy as np
import pytest
import sympy
from sympy import Abs, And, Eq, Max, Min, Mod, Ne, Not, Or, Piecewise, ceiling, floor, sign, sqrt

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import sympy_bridge as ours
from lego_mlir.mlir import SympyPrinter
from lego_mlir.mlir.bindings import func, ir
from lego_mlir.mlir.context import new_context

X, Y = sympy.symbols("x y", integer=True)
N = sympy.Symbol("n", integer=True, nonnegative=True)
D = sympy.Symbol("d", integer=True, positive=True)
SYMBOLS = (X, Y, N, D)
COUNT = int(os.environ.get("LEGO_TEST_SYMPY", "50"))


def built(expr: Any, kinds: list[str] | None = None, ranges: Any = None) -> tuple[Any, Any]:
    """Return a module with a function of the symbols that computes `expr`, and the function."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        types = [ir.Type.parse(k) for k in kinds or ["index"] * len(SYMBOLS)]
        with ir.InsertionPoint(module.body):
            op = func.FuncOp("f", ir.FunctionType.get(types, []))
            block = op.add_entry_block()
            with ir.InsertionPoint(block):
                values = dict(zip(SYMBOLS, block.arguments, strict=True))
                results = SympyPrinter(values, ranges).doprint([expr])
                func.ReturnOp(results)
            kind = ir.FunctionType.get(types, [r.type for r in results])
            op.attributes["function_type"] = ir.TypeAttr.get(kind)
        module.operation.verify()
        return module, op.operation


def expected(expr: Any, point: tuple[int, ...]) -> int:
    """Return SymPy's own value."""
    value = sympy.sympify(expr).subs(dict(zip(SYMBOLS, point, strict=True)))
    return int(bool(value)) if value.is_Boolean else int(value)


POINTS = [
    (7, 3, 5, 2), (-7, 3, 0, 1), (-8, -3, 9, 4), (0, 1, 24, 5), (13, -5, 2, 3), (-1, -1, 1, 7),
]  # fmt: skip
EXPRESSIONS = [
    X + 2 * Y - 3, X * Y * N, X**3 - Y**2, -X, sympy.Integer(5),
    floor(X / 4), floor(X / D), ceiling(X / 4), ceiling(X / D), floor(X / 3 + Y / 2),
    floor(sympy.Rational(7, 2) * X), Mod(X, 4), Mod(X, D), Mod(X, -3), X * (X + 1) / 2,
    Min(X, Y, 3), Max(X, 2 * Y), Abs(X - Y), sign(X),
    Piecewise((X, X < Y), (N, Eq(X, Y)), (Y, True)),
    sqrt(N) < 3, sqrt(N + 1) >= X, Min(X / 2, Y / 3) >= 1, X < Y, X <= Y, X > Y, X >= 3,
    Eq(X, Y), Ne(X, Y), X / 2 < Y / 3,
    And(X < Y, N > 1), Or(X < Y, N > 1, Y > 0), Not(And(X < Y, N > 1)), sympy.Xor(X < Y, N > 1),
    sympy.ITE(X < Y, N > 1, N > 5), floor(sqrt(N)), ceiling(sqrt(N)), floor(2 * sqrt(N)),
    floor(sqrt(N) / 3), floor(Min(X / 2, Y / 3)), floor(Piecewise((X / 2, X < Y), (Y / 3, True))),
    ours.FloorDiv(X, D), ours.Mod(X, D), ours.Xor(X, Y), ours.ISqrt(N), ours.Less(X, Y),
    ours.Where(ours.Less(X, Y), X, N), sympy.Piecewise((1, True)), sympy.true,
]  # fmt: skip


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_operations_compute_what_sympy_does(expr: Any) -> None:
    module, function = built(expr)
    (got,) = emitted.run(function, *np.array(POINTS).T)
    del module
    assert np.broadcast_to(got, len(POINTS)).tolist() == [expected(expr, p) for p in POINTS]


# --------------------------------------------------------------------------- random expressions
def drawn(draw: random.Random, depth: int) -> Any:
    """Return a random integer expression of SymPy's, with divisors that are never zero."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice([*SYMBOLS, *SYMBOLS, *map(sympy.Integer, (-5, -1, 0, 1, 2, 3, 8, 12))])
    a, b = drawn(draw, depth - 1), drawn(draw, depth - 1)
    divisor = draw.choice([D, 2 * D, D + 3, *map(sympy.Integer, (2, 3, 4, 7, 8, -3, 64))])
    condition: Callable[..., Any] = draw.choice(
        [
            lambda: a < b,
            lambda: a <= b,
            lambda: Eq(a, b),
            lambda: Ne(a, 3),
            lambda: Or(a < b, a > 4),
        ]
    )
    make: Callable[[], Any] = draw.choice(
        [
            lambda: a + b, lambda: a - b, lambda: a * draw.choice([-2, 2, 3, 8]), lambda: a * b,
            lambda: floor(a / divisor), lambda: ceiling(a / divisor),
            lambda: floor(a / divisor + b / 2), lambda: Mod(a, divisor), lambda: Min(a, b),
            lambda: Max(a, b), lambda: Abs(a), lambda: Piecewise((a, condition()), (b, True)),
            lambda: ours.FloorDiv(a, divisor), lambda: ours.Xor(a, b), lambda: a**2,
            lambda: ours.ISqrt(Abs(a)), lambda: floor(sqrt(Abs(a) + 1)),
            lambda: ours.Where(ours.Less(a, b), a, b), lambda: ours.Mod(a, divisor),
        ]
    )  # fmt: skip
    return make()


def test_random_expressions_compute_what_sympy_does() -> None:
    """LEGO_TEST_SYMPY is the number of expressions."""
    compare(range(COUNT))


def compare(seeds: range) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        expr = drawn(draw, 3)
        points = [
            (*(draw.randint(-40, 40) for _ in "xy"), draw.randint(0, 60), draw.randint(1, 9))
            for _ in range(6)
        ]
        truth = [expected(expr, p) for p in points]
        module, function = built(expr)
        (got,) = emitted.run(function, *np.array(points).T)
        assert np.broadcast_to(got, len(points)).tolist() == truth, f"{seed}: {expr}"
        del module


# --------------------------------------------------------------------------------- what is built
def operations(expr: Any, kinds: list[str] | None = None, ranges: Any = None) -> list[str]:
    module, function = built(expr, kinds, ranges)
    text = [o.operation.name for o in function.regions[0].blocks[0].operations]
    del module
    return [name for name in text if name not in ("arith.constant", "func.return")]


def test_assumptions_and_ranges_choose_the_operations() -> None:
    assert operations(floor(N / 4)) == ["arith.shrui"]
    assert operations(floor(X / 4)) == ["arith.shrsi"]
    assert operations(floor(X / 5)) == ["arith.floordivsi"]
    assert operations(floor(X / 5), ranges={X: (0, None)}) == ["arith.divui"]
    assert operations(floor(X / 8), ranges={X: (0, 7)}) == []
    assert operations(3 * X + 4 * Y + 1) == ["affine.apply"]


def test_common_subexpressions_are_built_once() -> None:
    names = operations(floor(N / 5) ** 2 + floor(N / 5) * X)
    assert names.count("arith.divui") == 1


def test_integers_are_cast() -> None:
    assert operations(X + Y, ["i32", "i64", "index", "index"]) == [
        *["arith.index_cast"] * 2,
        "affine.apply",
    ]


VECTOR = "vector<4xindex>"


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_vectors_are_computed_element_by_element(expr: Any) -> None:
    module, function = built(expr, [VECTOR, "index", VECTOR, "index"])
    xs, ns = np.array([7, -7, 0, 13]), np.array([5, 0, 9, 24])
    (got,) = emitted.run(function, xs, 3, ns, 2)
    del module
    truth = [expected(expr, (x, 3, n, 2)) for x, n in zip(xs.tolist(), ns.tolist(), strict=True)]
    assert np.broadcast_to(got, 4).tolist() == truth


def test_what_depends_on_scalars_alone_stays_a_scalar() -> None:
    module, function = built(floor(N / 5) * X + Y, [VECTOR, "index", "index", "index"])
    kinds = {
        o.operation.name: str(o.operation.results[0].type)
        for o in function.regions[0].blocks[0].operations
        if o.operation.results
    }
    del module
    assert kinds["arith.divui"] == "index"
    assert kinds["arith.muli"] == VECTOR


# ----------------------------------------------------------------------------------------- errors
class Halves(sympy.Function):
    """A class of a user's own that says what it is."""

    def _lego_index(self, printer: Any) -> Any:
        return printer._print(self.args[0]) // 2


def test_a_class_may_say_what_it_is() -> None:
    assert operations(Halves(N)) == ["arith.shrui"]


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (X / 2, "'x/2' is not known to be an integer"),
        (sympy.sin(X), "'sin[(]x[)]' is not an integer index expression"),
        (X + sympy.Symbol("k"), "the symbols k of 'k [+] x' have no value"),
        (2**X, "no integer power"),
    ],
    ids=str,
)
def test_mistakes_are_errors(expr: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        built(expr)


def test_values_have_fitting_types() -> None:
    with pytest.raises(LegoError, match="symbol 'x' stands for a value of type f32"):
        built(X, ["f32", "index", "index", "index"])
    with pytest.raises(LegoError, match="vectors of an expression differ in shape"):
        built(X, ["vector<4xi32>", "vector<8xi32>", "index", "index"])
    with new_context(), ir.Location.unknown(), pytest.raises(LegoError, match="stands for 5"):
        SympyPrinter({X: 5})
