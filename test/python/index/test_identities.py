"""The identities behind the rules, each proven by Z3, and refuted once its condition is dropped.

Divisors run over small numbers so that every query is linear; all else is any integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest
import z3

x, q, r = z3.Ints("x q r")
SMALL = range(1, 7)


def divided(a: z3.ArithRef, d: int) -> z3.ArithRef:
    return a / d  # Z3 divides as Euclid does, which for d > 0 rounds down


Claim = tuple[z3.BoolRef, z3.BoolRef]
"""A condition and what follows from it."""


def split() -> Iterator[Claim]:
    for d in SMALL:
        whole = d * q + r
        yield z3.BoolVal(True), divided(whole, d) == q + divided(r, d)
        yield z3.BoolVal(True), whole % d == r % d


def constant_quotient() -> Iterator[Claim]:
    for d, k in product(SMALL, (-1, 0, 3)):
        within = z3.And(x >= k * d, x < (k + 1) * d)
        yield within, divided(x, d) == k
        yield within, x % d == x - k * d


def common_factors() -> Iterator[Claim]:
    for g, m in product(range(2, 7), range(2, 7)):
        within = z3.And(r >= 0, r < g)
        yield within, divided(g * q + r, g * m) == divided(q, m)
        yield within, (g * q + r) % (g * m) == g * (q % m) + r


def div_of_div() -> Iterator[Claim]:
    for a, d in product(SMALL, SMALL):
        yield z3.BoolVal(True), divided(divided(x, a), d) == divided(x, a * d)


def div_of_mod() -> Iterator[Claim]:
    for n, d in product(range(2, 13), range(2, 7)):
        m = max(n // d, 1)
        yield z3.BoolVal(n % d == 0), divided(x % n, d) == divided(x, d) % m


def drop_inner_mod() -> Iterator[Claim]:
    for c, n, d in product((1, 2, 3, -4), (2, 4, 6), (2, 3, 8)):
        yield z3.BoolVal(c * n % d == 0), (c * (x % n) + r) % d == (c * x + r) % d


def recombination() -> Iterator[Claim]:
    for d, b in product(SMALL, SMALL):
        yield z3.BoolVal(True), d * divided(x, d) + x % d == x
        yield z3.BoolVal(True), x % d + d * (divided(x, d) % b) == x % (d * b)


def multiple() -> Iterator[Claim]:
    for d in SMALL:
        yield z3.BoolVal(True), x - d * divided(x, d) == x % d


def exact_quotient() -> Iterator[Claim]:
    for d in range(2, 7):
        yield x % d == 0, d * divided(x, d) == x


def xor_of_shifts() -> Iterator[Claim]:
    a, b = z3.BitVecs("a b", 16)
    for k in range(1, 6):
        yield z3.BoolVal(True), (a ^ b) >> k == (a >> k) ^ (b >> k)
        mask = (1 << k) - 1
        yield z3.BoolVal(True), (a ^ b) & mask == (a & mask) ^ (b & mask)


FREE = [split, div_of_div, recombination, multiple, xor_of_shifts]
CONDITIONAL = [constant_quotient, common_factors, div_of_mod, drop_inner_mod, exact_quotient]


def answer(*facts: z3.BoolRef) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.add(*facts)
    return solver.check()


@pytest.mark.parametrize("identity", [*FREE, *CONDITIONAL], ids=lambda f: f.__name__)
def test_the_identity_holds(identity: Callable[[], Iterator[Claim]]) -> None:
    for condition, conclusion in identity():
        assert answer(condition, z3.Not(conclusion)) == z3.unsat, conclusion


@pytest.mark.parametrize("identity", CONDITIONAL, ids=lambda f: f.__name__)
def test_the_condition_is_needed(identity: Callable[[], Iterator[Claim]]) -> None:
    """A condition that could be dropped would only hide where a rule applies."""
    refuted = [
        answer(z3.Not(condition), z3.Not(conclusion)) == z3.sat
        for condition, conclusion in identity()
    ]
    assert any(refuted)
