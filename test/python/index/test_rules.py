"""Each rewrite rule by example: what it gives, that it gives the truth, that nothing else does it.

An example is a function, so it runs on symbols, where the rules simplify, and on NumPy arrays,
where Python's arithmetic is the truth. `RULES` says which function of the product each example
needs: with that function taken away the result must change. `KEPT` are expressions that miss a
rule's condition by a little and must stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import (
    Expr,
    Int,
    Sym,
    construct,
    evaluate,
    maximum,
    minimum,
    polynomial,
    rules,
    where,
)
from lego_mlir.index.nodes import Xor
from lego_mlir.index.proofs import prover
from lego_mlir.index.text import to_text

Example = Callable[[Any], Any]


def multiple(name: str, *divisors: Int) -> Sym:
    return Sym(name, 1, None, frozenset(divisors))


BK, BM, A, B = (Sym(name, 1) for name in ("BK", "BM", "a", "b"))
K, M, P = multiple("K", BK), multiple("M", BM), multiple("P", 128)
BQ = multiple("BQ", 16)
Q = multiple("Q", BQ)
SYMBOLS = SimpleNamespace(
    **{s.name: s for s in (BK, BM, A, B, K, M, P, BQ, Q)},
    u=Sym("u", 0, 11),
    v=Sym("v", 0, 5),
    w=Sym("w", 0, 6),
    i=Sym("i", 0, 7),
    j=Sym("j", 0, 63),
    k=Sym("k", 0, K // BK - 1),
    kk=Sym("kk", 0, BK - 1),
    m=Sym("m", 0, M // BM - 1),
    mm=Sym("mm", 0, BM - 1),
    one=Sym("one", 7, 7),
    neg=Sym("neg", -6, -1),
    x=Sym("x"),
    n=Sym("n"),
)


def points(count: int = 4000) -> SimpleNamespace:
    """Values for all symbols at once, every fact kept, drawn once and for all."""
    rng = np.random.default_rng(7)
    value: dict[str, np.ndarray] = {}
    for name in ("BK", "BM", "a", "b"):
        value[name] = rng.integers(1, 9, count)
    value["K"] = value["BK"] * rng.integers(1, 6, count)
    value["M"] = value["BM"] * rng.integers(1, 6, count)
    value["BQ"] = 16 * rng.integers(1, 4, count)
    value["Q"] = value["BQ"] * rng.integers(1, 4, count)
    value["P"] = 128 * rng.integers(1, 4, count)
    for name, s in vars(SYMBOLS).items():
        if name not in value and s.hi is not None:
            value[name] = rng.integers(s.lo, np.asarray(evaluate(s.hi, value)) + 1, count)
    value["x"] = rng.integers(-300, 300, count)
    value["n"] = rng.choice([-5, -2, -1, 1, 2, 7], count)
    return SimpleNamespace(**value)


POINTS = points()

# The rule that does it (none where two would do it), the example, the result.
RULES: list[tuple[Any, Example, str]] = [
    # Table 1 of the paper, first and last row: multiples of the divisor come out.
    ((rules, "split"), lambda e: (6 * e.x + e.n) // 6, "x + n//6"),
    ((rules, "split"), lambda e: (6 * e.x + e.n) % 6, "n%6"),
    ((rules, "split"), lambda e: (5 * e.x) // 3, "x + (2*x)//3"),
    ((rules, "split"), lambda e: (-5 * e.x) // 3, "-x + (-2*x)//3"),
    ((rules, "split"), lambda e: (7 * e.x - 12) % 3, "x%3"),
    (None, lambda e: (3 - 6 * e.u) // 6, "-u"),
    ((rules, "split"), lambda e: (e.x - 17) % 8, "(x + 7)%8"),
    ((rules, "split"), lambda e: (e.BK * e.k + e.n) // e.BK, "k + n//BK"),
    ((rules, "split"), lambda e: (e.i - e.K) // e.K, "i//K - 1"),
    ((rules, "split"), lambda e: (e.a * e.b * e.x + e.a) // e.b, "a*x + a//b"),
    # Third and fourth row: the interval or the prover knows the quotient.
    (None, lambda e: e.v // 6, "0"),
    ((rules, "constant_quotient"), lambda e: e.v % 6, "v"),
    (None, lambda e: e.neg // 6, "-1"),
    ((rules, "constant_quotient"), lambda e: e.neg % 6, "neg + 6"),
    (None, lambda e: (e.i + 16) // 8, "2"),
    ((rules, "constant_quotient"), lambda e: e.kk // e.BK, "0"),
    ((rules, "constant_quotient"), lambda e: (e.kk - e.BK) // e.BK, "-1"),
    ((rules, "constant_quotient"), lambda e: (e.BK * e.k + e.kk) // e.K, "0"),
    ((rules, "constant_quotient"), lambda e: (e.BM * e.m + e.mm) % e.M, "BM*m + mm"),
    ((rules, "constant_quotient"), lambda e: (e.K * e.x + e.BK * e.k + e.kk) // e.K, "x"),
    ((prover, "_all_nonnegative"), lambda e: (e.BK * e.k + e.kk) // e.K, "0"),
    # What bounds do not tell, the solver does.
    ((prover, "_is_shown"), lambda e: (2 * maximum(e.i, e.j) - e.i - e.j) // 128, "0"),
    ((prover, "_is_shown"), lambda e: (e.j * e.j - 2 * e.j * e.i + e.i * e.i) // 4096, "0"),
    # Second row, in its two forms.
    ((polynomial, "_cancel_split"), lambda e: e.a * (e.x // e.a) + e.x % e.a, "x"),
    ((polynomial, "_cancel_split"), lambda e: 12 * e.n * (e.x // 6) + 2 * e.n * (e.x % 6), "2*n*x"),
    ((polynomial, "_cancel_split"), lambda e: e.n * (e.x // e.n) + e.x % e.n, "x"),
    ((polynomial, "_cancel_split"), lambda e: e.x % 6 + 6 * ((e.x // 6) % 4), "x%24"),
    (
        (polynomial, "_cancel_split"),
        lambda e: e.x % e.a + e.a * ((e.x // e.a) % e.b),
        "x%(a*b)",
    ),
    (
        (polynomial, "_cancel_split"),
        lambda e: (e.a + 2) * (e.x // (e.a + 2)) + e.x % (e.a + 2),
        "x",
    ),
    ((polynomial, "_cancel_multiple"), lambda e: e.x - 6 * (e.x // 6), "x%6"),
    ((polynomial, "_cancel_multiple"), lambda e: e.x - e.n * (e.x // e.n), "x%n"),
    (
        (polynomial, "_cancel_multiple"),
        lambda e: e.a * (e.x + e.n + 1) - 4 * e.a * ((e.x + e.n + 1) // 4),
        "a*((n + x + 1)%4)",
    ),
    (
        (polynomial, "_cancel_multiple"),
        lambda e: e.x + e.n - 4 * ((e.x + e.n + 1) // 4),
        "(n + x + 1)%4 - 1",
    ),
    # A divisor that is a sum.
    ((polynomial, "multiples"), lambda e: (e.x * (e.a + 2) + e.n) // (e.a + 2), "x + n//(a + 2)"),
    ((polynomial, "multiples"), lambda e: (e.x * (e.a + 2) + e.n) % (e.a + 2), "n%(a + 2)"),
    # What symbols carry: 128 divides P, BK divides K.
    ((polynomial, "_cancel_exact_quotient"), lambda e: 128 * (e.P // 128), "P"),
    ((polynomial, "_cancel_exact_quotient"), lambda e: 2 * e.x * e.BK * (e.K // e.BK), "2*K*x"),
    (None, lambda e: e.P % 64, "0"),
    ((polynomial, "exact_term"), lambda e: (e.P * e.x + 5) % 128, "5"),
    ((polynomial, "exact_term"), lambda e: e.K * e.x // e.BK, "x*(K//BK)"),
    ((polynomial, "exact_term"), lambda e: e.K * e.x // (e.K // e.BK), "BK*x"),
    (
        (polynomial, "exact_term"),
        lambda e: (2 * e.P * e.x + e.v) // (e.P // 128),
        "256*x + v//(P//128)",
    ),
    ((polynomial, "exact_term"), lambda e: e.Q % 16, "0"),  # by way of BQ, which is one of 16
    # A factor in common with the divisor.
    ((rules, "common_factors"), lambda e: (6 * e.x + e.v) // 12, "x//2"),
    ((rules, "common_factors"), lambda e: (6 * e.x + e.v) % 12, "v + 6*(x%2)"),
    ((rules, "common_factors"), lambda e: (6 * e.x + 4) // 9, "(2*x + 1)//3"),
    ((rules, "common_factors"), lambda e: (6 * e.x + 5) % 9, "3*((2*x + 1)%3) + 2"),
    ((rules, "common_factors"), lambda e: (e.BK * e.x + e.kk) // (e.BK * e.a), "x//a"),
    ((rules, "common_factors"), lambda e: (e.BK * e.x + e.kk) % (e.BK * 4), "BK*(x%4) + kk"),
    # Division of division, of remainder; remainder of remainder.
    ((rules, "div_of_div"), lambda e: (e.x // e.a) // e.b, "x//(a*b)"),
    ((rules, "div_of_div"), lambda e: (e.x // 4) // 3, "x//12"),
    ((rules, "div_of_mod"), lambda e: (e.x % 12) // 4, "(x//4)%3"),
    ((rules, "div_of_mod"), lambda e: (e.x % (e.a * e.b)) // e.a, "(x//a)%b"),
    ((rules, "div_of_mod"), lambda e: (e.x % e.K) // e.BK, "(x//BK)%(K//BK)"),
    ((rules, "drop_inner_mod"), lambda e: (e.x % 12) % 4, "x%4"),
    ((rules, "drop_inner_mod"), lambda e: (4 * (e.x % 6) + e.x) % 8, "(5*x)%8"),
    ((rules, "drop_inner_mod"), lambda e: (e.x % (e.a * e.b)) % e.b, "x%b"),
    # Exclusive or by powers of two.
    ((rules, "div_of_xor"), lambda e: (e.x ^ e.i) // 4, "((i//4) ^ (x//4))"),
    ((rules, "div_of_xor"), lambda e: (e.i ^ e.j) // 8, "j//8"),
    ((rules, "mod_of_xor"), lambda e: (e.i ^ e.j) % 8, "(i ^ (j%8))"),
    ((rules, "mod_of_xor"), lambda e: (e.x ^ 5) % 8, "((x%8) ^ 5)"),
    ((construct, "_xor_of"), lambda e: (e.x ^ e.i) ^ (e.j ^ e.x), "(i ^ j)"),
    ((construct, "_xor_of"), lambda e: ((e.x ^ 5) ^ e.i) ^ 6, "((i ^ x) ^ 3)"),
    (None, lambda e: where(e.i % 2, 0, 1) ^ 1, "i%2"),
    (None, lambda e: where(e.i < e.j, 1, 0), "(i < j)"),
    # The example that the paper's own implementation leaves (Figure 9).
    (None, lambda e: (6 * e.u + e.v) % 18 // 6, "u%3"),
    # A variable with one value is that value.
    (None, lambda e: 3 * e.one + e.x, "x + 21"),
]

# Just outside a rule's condition.
KEPT: list[tuple[str, Example, str]] = [
    ("0 <= x < a fails above", lambda e: e.w // 6, "w//6"),
    ("0 <= x < a fails above", lambda e: e.w % 6, "w%6"),
    ("0 <= x < a fails below", lambda e: (e.i - 1) // 8, "(i + 7)//8 - 1"),
    ("0 <= x < a fails below", lambda e: (e.v - 1) % 6, "(v + 5)%6"),
    ("the bound is one too large", lambda e: (e.kk + 1) // e.BK, "(kk + 1)//BK"),
    ("low < g fails", lambda e: (6 * e.x + e.w) // 12, "(w + 6*x)//12"),
    ("low < g fails", lambda e: (6 * e.x + e.w) % 12, "(w + 6*x)%12"),
    ("0 <= low fails", lambda e: (6 * e.x + e.v - 1) // 12, "(v + 6*x + 11)//12 - 1"),
    ("d divides n fails", lambda e: (e.x % 10) // 4, "(x%10)//4"),
    ("d divides n fails", lambda e: (e.x % e.M) // e.BK, "(x%M)//BK"),
    ("d divides c*n fails", lambda e: (e.x % 10) % 4, "(x%10)%4"),
    ("the divisor may be negative", lambda e: (e.x // 2) // e.n, "(x//2)//n"),
    ("the divisor may be negative", lambda e: e.v // (8 * e.n), "v//(8*n)"),
    (
        "the modulus may be negative",
        lambda e: e.x % 6 + 6 * ((e.x // 6) % e.n),
        "x%6 + 6*((x//6)%n)",
    ),
    (
        "the modulus may be negative",
        lambda e: e.x % e.n + e.n * ((e.x // e.n) % 4),
        "n*((x//n)%4) + x%n",
    ),
    ("d divides M is not known", lambda e: 64 * (e.M // 64), "64*(M//64)"),
    ("256 divides P is not known", lambda e: e.P % 256, "P%256"),
    ("no power of two", lambda e: (e.x ^ e.i) // 6, "(i ^ x)//6"),
    ("no power of two", lambda e: (e.i ^ e.j) % 6, "(i ^ j)%6"),
    (
        "only a part of the sum",
        lambda e: 2 * e.x - 3 * e.a * ((e.x + e.n) // 3),
        "-3*a*((n + x)//3) + 2*x",
    ),
    ("the multiple is another", lambda e: e.x - 4 * (e.x // 6), "x - 4*(x//6)"),
    ("d is not all there", lambda e: (e.x * e.a + 1) // (e.a + 2), "(a*x + 1)//(a + 2)"),
    ("the scales differ", lambda e: 2 * (e.x // 2) + 3 * (e.x % 2), "2*(x//2) + 3*(x%2)"),
    ("an exact quotient stays", lambda e: (e.M // e.BM) // e.BK, "(M//BM)//BK"),
    ("Min of overlapping ranges", lambda e: minimum(e.i, e.j), "min(i, j)"),
    ("Max of overlapping ranges", lambda e: maximum(e.i, e.w), "max(i, w)"),
]


def fresh(example: Example) -> Int:
    """The expression derived anew: nothing that an earlier test cached counts."""
    for cached in (
        rules.floordiv,
        rules.mod,
        prover._is_nonnegative,
        prover._is_refuted,
        prover._is_shown,
    ):
        getattr(cached, "cache_clear", lambda: None)()
    return example(SYMBOLS)  # type: ignore[no-any-return]


ALL = [(example, text) for _, example, text in [*RULES, *KEPT]]


@pytest.mark.parametrize(("example", "text"), ALL, ids=[text for _, text in ALL])
def test_worked_examples(example: Example, text: str) -> None:
    """The exact form: catches a rule that is lost, and one that goes too far."""
    x = fresh(example)
    assert to_text(x) == text
    assert (evaluate(x, vars(POINTS)) == example(POINTS)).all()


WITHOUT: dict[str, Any] = {
    "split": lambda x, d: (0, x),
    "constant_quotient": lambda x, d: None,
    "_cancel_split": lambda terms: None,
    "_cancel_exact_quotient": lambda terms: None,
    "exact_term": lambda coefficient, mono, d: None,
    "common_factors": lambda x, d: iter(()),
    "drop_inner_mod": lambda x, d: x,
    "_xor_of": lambda *operands: Xor(operands[0], operands[-1]),
    "_cancel_multiple": lambda terms: None,
    "multiples": lambda x, d: (0, x),
    "_all_nonnegative": lambda *claims: False,
    "_is_shown": lambda x: False,
}


@pytest.mark.parametrize(
    ("rule", "example"),
    [(rule, example) for rule, example, _ in RULES if rule],
    ids=[f"{rule[1]}: {text}" for rule, _, text in RULES if rule],
)
def test_every_example_needs_its_rule(
    rule: tuple[Any, str], example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rule the result is another: no rule is dead, no example tests a different one."""
    simplified = fresh(example)
    room, name = rule
    monkeypatch.setattr(room, name, WITHOUT.get(name, lambda x, d: None))
    assert fresh(example) is not simplified
    monkeypatch.undo()
    assert fresh(example) is simplified


CONDITIONS: list[tuple[Any, str, Any, str]] = [
    (prover, "is_within", lambda x, d: True, "0 <= x < a fails above"),
    (prover, "is_within", lambda x, d: True, "0 <= x < a fails below"),
    (prover, "is_within", lambda x, d: True, "the bound is one too large"),
    (prover, "is_within", lambda x, d: True, "low < g fails"),
    (prover, "is_within", lambda x, d: True, "0 <= low fails"),
    (polynomial, "divides", lambda d, x: True, "d divides n fails"),
    (polynomial, "divides", lambda d, x: True, "d divides c*n fails"),
    (polynomial, "divides", lambda d, x: True, "d divides M is not known"),
    (rules.ranges, "is_positive", lambda x: True, "the divisor may be negative"),
    (rules.ranges, "is_positive", lambda x: True, "the modulus may be negative"),
    (rules, "_is_power_of_two", lambda d: True, "no power of two"),
    (prover, "is_nonnegative", lambda x: True, "Min of overlapping ranges"),
    (prover, "is_nonnegative", lambda x: True, "Max of overlapping ranges"),
]


@pytest.mark.parametrize(
    ("room", "condition", "always", "why"), CONDITIONS, ids=[why for *_, why in CONDITIONS]
)
def test_without_its_condition_a_rule_is_wrong(
    room: Any, condition: str, always: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The examples of KEPT have teeth: drop the condition and their values are wrong."""
    monkeypatch.setattr(room, condition, always)
    wrong = []
    for reason, example, _ in KEPT:
        if reason == why:
            try:
                x = fresh(example)
                with np.errstate(divide="ignore"):
                    wrong.append(not (evaluate(x, vars(POINTS)) == example(POINTS)).all())
            except (RecursionError, AssertionError, LegoError):  # worse than wrong
                wrong.append(True)
    monkeypatch.undo()
    fresh(lambda e: 0)
    assert wrong
    assert any(wrong)


def test_known_divisibility() -> None:
    e, divides = SYMBOLS, polynomial.divides
    assert divides(4, 8)
    assert divides(4, 8 * e.x - 12)
    assert not divides(4, 8 * e.x + 2)
    assert not divides(4, 8 * e.x + 4 * e.n + e.i)
    assert divides(e.BK, e.K * e.x + 3 * e.BK)
    assert not divides(e.BK, e.K * e.x + 3)
    assert not divides(e.K, e.BK)
    assert divides(64, e.P)
    assert not divides(256, e.P)
    assert not divides(0, e.P)
    assert not divides(e.BK, 0 * e.x + 6)


def test_division_by_zero_is_an_error() -> None:
    for operation in (lambda x: x // 0, lambda x: x % 0):
        with pytest.raises(LegoError, match="'x' by zero"):
            operation(SYMBOLS.x)


def test_a_quotient_of_itself_is_the_number_one() -> None:
    """A monomial without atoms once stayed a node and printed as nothing."""
    one = SYMBOLS.K // SYMBOLS.K
    assert one == 1
    assert isinstance(one, int)


def test_an_exact_quotient_divided_again_ends() -> None:
    """Dividing (M//BM) by a size once went round in circles between two rules."""
    x = (SYMBOLS.M // SYMBOLS.BM) // (SYMBOLS.BK * SYMBOLS.a)
    assert isinstance(x, Expr)
    assert (evaluate(x, vars(POINTS)) == POINTS.M // POINTS.BM // (POINTS.BK * POINTS.a)).all()
