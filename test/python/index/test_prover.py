"""What the prover can show, how tight it is, and that it claims nothing beyond.

Every claim `x >= 0` here is exact: `x - 1 >= 0` is false at some point, so a bound that is off by
one in the prover either loses the claim or claims the false one.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lego_mlir.index import Int, Sym, maximum, minimum, work
from lego_mlir.index.proofs import prover
from lego_mlir.limits import Limits

BK = Sym("BK", 1)
K = Sym("K", 1, None, frozenset({BK}))
P = Sym("P", 1, None, frozenset({128}))
N, M = Sym("N", 1), Sym("M", 1)
s = SimpleNamespace(
    k=Sym("k", 0, K // BK - 1),
    kk=Sym("kk", 0, BK - 1),
    p=Sym("p", 0, P // 128 - 1),
    r=Sym("r", 0, 127),
    j=Sym("j", 0, N - 1),
    x=Sym("x"),
)

TIGHT: list[Int] = [
    s.kk,
    BK - 1 - s.kk,
    N - 1 - s.j,
    K - 1 - (BK * s.k + s.kk),  # the last element of the last tile
    P - 1 - (128 * s.p + s.r),
    M * N - 1 - (N * Sym("i", 0, M - 1) + s.j),
    N - 1 - s.x % N,
    s.x % N,
    maximum(4, N) - N,
    maximum(4, N) - 4,
    N - minimum(4, N),
    4 - minimum(4, N),
    N // 8 - 1 - Sym("q", 0, N // 8 - 1),
    (N - 1) // 4 - s.j // 4,
    K // BK - 1 - (K - 1 - Sym("m", 0, K - 1)) // BK,
    maximum(4, N) - 1 - Sym("t", 0, maximum(4, N) - 1),
    N + M - maximum(N, M) - 1,  # in both cases
    15 - s.x // 8 % 16 - maximum(0, 11 - s.x // 8 % 16),
    minimum(N, M) * K - K,
]
UNKNOWN: list[Int] = [
    s.x,
    -1 * s.x * s.x,
    M - N,
    N - 1 - s.kk,
    s.x // N,
    maximum(N, M) - K,
    N - maximum(4, N),
    minimum(4, N) - N,
    s.j - 1,
]


@pytest.mark.parametrize("x", TIGHT, ids=str)
def test_claims_are_proven_and_tight(x: Int) -> None:
    assert prover.is_nonnegative(x)
    assert not prover.is_nonnegative(x - 1)
    assert prover.is_less(-1, x)
    assert not prover.is_less(0, x)


@pytest.mark.parametrize("x", UNKNOWN, ids=str)
def test_without_a_proof_a_claim_does_not_hold(x: Int) -> None:
    assert not prover.is_nonnegative(x)
    assert not prover.is_less(-1, x)


def test_an_index_is_proven_inside_its_size() -> None:
    assert prover.is_within(s.kk, BK)
    assert prover.is_within(BK * s.k + s.kk, K)
    assert not prover.is_within(s.kk + 1, BK)
    assert not prover.is_within(s.kk - 1, BK)
    assert prover.is_within(3, 4)
    assert not prover.is_within(4, 4)
    assert not prover.is_within(-1, 4)


def test_claims_about_clamped_indices_take_few_steps() -> None:
    """As those of a padded tensor, whose last word may be cut: they fail only far inside."""
    block, thread, k = Sym("block", 0, 102), Sym("thread", 0, 255), Sym("k", 0, 15)
    word = (block * 256 + thread) * 16 // 21
    at: Int = (
        20880 * minimum(1, maximum(0, word // 4991 - 1))
        + 10440 * minimum(1, maximum(0, word // 713 % 7 - 2))
        + 580 * minimum(17, maximum(0, word // 31 % 23 - 2))
        + 20 * minimum(28, word % 31)
    )
    last = 20880 + 10440 + 580 * 17 + 20 * 28
    with Limits(index_steps=8_000).applied(), work.measured():
        assert prover.is_nonnegative(last + 15 - at - k)
        assert not prover.is_nonnegative(last + 7 - at - k)


def test_claims_are_refuted_where_indices_are_zero() -> None:
    """No search, and no solver, asks further about indices without bounds."""
    x, k = Sym("x"), Sym("k")
    claim = 16 * minimum(15, maximum(0, x % 18 - 1)) - minimum(7, k)
    with Limits(index_steps=200).applied(), work.measured():
        assert not prover.is_nonnegative(claim + 6)
    assert prover.is_nonnegative(claim + 7)
