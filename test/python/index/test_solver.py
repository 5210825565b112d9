"""Z3's proofs and counter-examples, and the sample points that spare most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.index import Int, Sym, evaluate, isqrt, maximum, minimum, where
from lego_mlir.index.nodes import FloorDiv, Mod
from lego_mlir.index.nodes import ISqrt as Root
from lego_mlir.index.proofs import exhaustion, prover, samples
from lego_mlir.index.proofs.solver import Answer, prove

X = Sym("x")
T = Sym("t", 0, 1023)
D = Sym("d", 1)
BK = Sym("BK", 1)
K = Sym("K", 1, None, frozenset({BK}))
k, kk = Sym("k", 0, K // BK - 1), Sym("kk", 0, BK - 1)

ZERO: list[Callable[[], Int]] = [
    lambda: minimum(X, T) + maximum(X, T) - X - T,
    lambda: FloorDiv(X, 8) * 8 + Mod(X, 8) - X,
    lambda: FloorDiv(X, D) * D + Mod(X, D) - X,
    lambda: FloorDiv(X, Sym("s", -4, -1)) * Sym("s", -4, -1) + Mod(X, Sym("s", -4, -1)) - X,
    lambda: (T ^ 21) % 32 - ((T % 32) ^ 21),
    lambda: where(X < 0, -1, 1) * where(X < 0, -1, 1) - 1,
    lambda: K - BK * FloorDiv(K, BK),
]
NONNEGATIVE: list[Callable[[], Int]] = [
    lambda: K - 1 - (BK * k + kk),
    lambda: T - isqrt(T) * isqrt(T),
    lambda: Mod(X, D),
    lambda: D - 1 - Mod(X, D),
    lambda: 2 * maximum(X, T) - X - T,
]
WRONG: list[tuple[list[Int], list[Int]]] = [
    ([X], []),
    ([], [X]),
    ([], [T - 1]),
    ([], [1022 - T]),
    ([T % 7 - T], []),
    ([0, (T ^ 5) - T], [T]),
    ([], [K - 2 - (BK * k + kk)]),
    ([], [T, isqrt(T) - 1]),
]


@pytest.mark.parametrize("claim", ZERO)
def test_equations_are_proven(claim: Callable[[], Int]) -> None:
    assert prove(zero=[claim()]) == Answer(True)
    assert prove(zero=[claim() + 1]).holds is not True


@pytest.mark.parametrize("claim", NONNEGATIVE)
def test_inequalities_are_proven_and_tight(claim: Callable[[], Int]) -> None:
    assert prove(nonnegative=[claim()]) == Answer(True)
    assert prove(nonnegative=[claim() - 1]).holds is not True


@pytest.mark.parametrize(("zero", "nonnegative"), WRONG)
def test_a_wrong_claim_has_a_counterexample(zero: list[Int], nonnegative: list[Int]) -> None:
    answer = prove(zero, nonnegative)
    assert answer.holds is False
    assert answer.counterexample is not None
    point: dict[str, Any] = answer.counterexample
    broken = [evaluate(x, point) != 0 for x in zero] + [evaluate(x, point) < 0 for x in nonnegative]
    assert any(broken)
    if "t" in point:
        assert 0 <= point["t"] <= 1023
    if "K" in point:
        assert point["K"] % point["BK"] == 0


def test_out_of_reach_is_unknown() -> None:
    """An exclusive or of unbounded operands, and a limit of no steps at all."""
    assert prove(zero=[(X ^ D) - X - D]) == Answer(None)
    assert prove(zero=[FloorDiv(X, D) * D + Mod(X, D) - X], rlimit=1) == Answer(None)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.integers(-9, 9), st.integers(-9, 9), st.integers(-40, 40), st.integers(1, 9),
    st.integers(0, 40), st.booleans(),
)  # fmt: skip
def test_exclusive_ors_are_decided_bit_by_bit(
    a: int, b: int, c: int, d: int, mask: int, signed: bool
) -> None:
    """Every claim, also about negative numbers, quotients of those, and multiples of 3."""
    u, v = Sym("u", -7 if signed else 0, 9), Sym("v", 3, 12, frozenset({3}))
    x = a * ((u ^ mask) // d) + b * ((v ^ u) % d) + c
    truth = [
        a * ((i ^ mask) // d) + b * ((j ^ i) % d) + c
        for i in range(-7 if signed else 0, 10)
        for j in (3, 6, 9, 12)
    ]
    answer = prove(nonnegative=[x])
    assert answer.holds == (min(truth) >= 0)


def test_two_ways_to_write_a_swizzle_are_one() -> None:
    i, j = Sym("i", 0, 8191), Sym("j", 0, 8191)
    swizzled = ((j // 8) ^ (i % 8)) * 8 + j % 8
    assert prove(zero=[(j ^ (i % 8 * 8)) - swizzled]) == Answer(True)
    assert prove(zero=[(j ^ (i % 16 * 8)) - swizzled]).holds is False


def test_an_undefined_branch_does_not_make_a_claim_true() -> None:
    """x is negative in the branch that is not taken: its root must not exclude those points."""
    x = where(X < 0, 1, Root(X))
    assert prove(nonnegative=[x - 2]).holds is False
    quotient = where(X < 1, -1, FloorDiv(T, X))
    assert prove(nonnegative=[quotient]).holds is False


def test_two_symbols_of_one_name_are_not_confused() -> None:
    a, b = Sym("a", 0, 7), Sym("a", 8, 9)
    assert prove(nonnegative=[b - a - 1]) == Answer(True)
    assert prove(nonnegative=[a - b]).holds is not True


def test_samples_keep_every_fact() -> None:
    found = samples.points(frozenset({k, kk, T}))
    assert len(found) > 10
    for p in found:
        assert p["K"] >= 1
        assert p["K"] % p["BK"] == 0
        assert 0 <= p["k"] <= p["K"] // p["BK"] - 1
        assert 0 <= p["kk"] <= p["BK"] - 1
        assert 0 <= p["t"] <= 1023
    ends = {p["t"] for p in found}
    assert {0, 1023} <= ends


def test_a_claim_that_points_decide_never_reaches_the_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*args: Any, **kwargs: Any) -> Answer:
        raise AssertionError("the solver was asked")

    monkeypatch.setattr("lego_mlir.index.proofs.solver.prove", never)
    fresh, lane, any_number, program = Sym("fresh", 0, 99), Sym("l", 0, 63), Sym("x"), Sym("p", 0)
    assert not prover.is_nonnegative(fresh - 50)
    assert not prover.is_within(fresh + T, 100)
    # What has no bound is refuted far away.
    assert not prover.is_nonnegative((3 - any_number) // 30 + 34)
    assert not prover.is_nonnegative(any_number + 40_000)
    assert not prover.is_nonnegative(64 - 192 * (program // 16 % 43))
    # Quotient and remainder are greatest at different lanes.
    carried = 805 - 5 * ((lane + 29) // 33) - 25 * ((lane + 29) % 33)
    assert prover.is_nonnegative(carried)
    assert not prover.is_nonnegative(carried - 1)
    with pytest.raises(AssertionError, match="asked"):
        prover.is_nonnegative(2 * maximum(fresh, T) - fresh - T)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(-9, 9), st.integers(-9, 9), st.integers(-40, 40), st.integers(1, 9), st.booleans()
)
def test_all_points_tell_what_enumeration_tells(
    a: int, b: int, c: int, d: int, signed: bool
) -> None:
    u, v = Sym("u", -7 if signed else 0, 9), Sym("v", 3, 12, frozenset({3}))
    x = a * (u // d) + b * ((v - u) % d) + minimum(u * v, c) + c
    points = [(i, j) for i in range(-7 if signed else 0, 10) for j in (3, 6, 9, 12)]
    truth = [a * (i // d) + b * ((j - i) % d) + min(i * j, c) + c for i, j in points]
    assert exhaustion.is_nonnegative(x) == (min(truth) >= 0)


def test_all_points_are_not_tried_where_they_are_many_or_numbers_too_large() -> None:
    wide, other_t = Sym("w", 0, 99_999), Sym("t", 0, 5)
    huge = T * T * (1 << 50) - T * T * (1 << 50) // 3
    for x in (X, wide, T * wide, k, T + other_t, huge, FloorDiv(T, Sym("z", 0, 3))):
        assert exhaustion.is_nonnegative(x) is None
    assert exhaustion.is_nonnegative(T) is True


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(-6, 6), st.integers(-6, 6), st.integers(-40, 40), st.integers(2, 9), st.booleans()
)
def test_the_solver_and_enumeration_agree(a: int, b: int, c: int, d: int, product: bool) -> None:
    u, v = Sym("u", 0, 11), Sym("v", -3, 5)
    x = a * (u // d) + b * (v % d) + (u * v if product else 0) + c
    truth = [evaluate(x, {"u": i, "v": j}) for i in range(12) for j in range(-3, 6)]
    answer = prove(nonnegative=[x])
    if answer.holds is None:
        pytest.fail(f"{x} is decidable: finitely many points")
    assert answer.holds == (min(truth) >= 0)
