"""The rewrite rules for `//` and `%`: each one identity, with the condition it needs.

All hold over the integers with floor division, for a divisor d > 0; where a rule needs more, its
docstring says what. The rules go from the most to the least specific, and each returns `None`
where it does not apply. Table 1 of the paper is `split` (its first and last rule), `within` (its
third and fourth) and the recombination in `index.polynomial` (its second).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import fmod, gcd

from lego_mlir.index import construct, polynomial, ranges
from lego_mlir.index.nodes import FloorDiv, Int, Mod, Poly, Xor
from lego_mlir.index.proofs import prover


@lru_cache(maxsize=1 << 14)
def floordiv(x: Int, d: Int) -> Int:
    """Return `x // d` in normal form, or a plain node if `d > 0` is not proven."""
    if d == 1:
        return x
    if isinstance(x, int) and x == 0:
        return 0
    if not ranges.is_positive(d):
        return FloorDiv(x, d)
    quotient, rest = split(x, d)
    return construct.add(quotient, _floordiv_rest(rest, d))


@lru_cache(maxsize=1 << 14)
def mod(x: Int, d: Int) -> Int:
    """Return `x % d` in normal form, or a plain node if `d > 0` is not proven."""
    if d == 1:
        return 0
    if isinstance(x, int) and x == 0:
        return 0
    if not ranges.is_positive(d):
        return Mod(x, d)
    _, rest = split(drop_inner_mod(x, d), d)
    return _mod_rest(rest, d)


def _floordiv_rest(x: Int, d: Int) -> Int:
    """Return `x // d` once no term of `x` is a multiple of `d`."""
    if isinstance(x, int) and isinstance(d, int):
        return x // d
    known = constant_quotient(x, d)
    if known is not None:
        return known
    for high, low, g, reduced in common_factors(x, d):
        if prover.is_within(low, g):
            return construct.floordiv(high, reduced)
    for rule in (div_of_div, div_of_mod, div_of_xor):
        result = rule(x, d)
        if result is not None:
            return result
    return FloorDiv(x, d)


def _mod_rest(x: Int, d: Int) -> Int:
    """Return `x % d` once no term of `x` is a multiple of `d`."""
    if isinstance(x, int) and isinstance(d, int):
        return x % d
    known = constant_quotient(x, d)
    if known is not None:
        return construct.sub(x, construct.mul(known, d))
    for high, low, g, reduced in common_factors(x, d):
        if prover.is_within(low, g):
            return construct.add(construct.mul(g, construct.mod(high, reduced)), low)
    masked = mod_of_xor(x, d)
    return Mod(x, d) if masked is None else masked


def split(x: Int, d: Int) -> tuple[Int, Int]:
    """Return q and r of `x = d*q + r`, with every term that `d` divides in q.

    Then `x // d = q + r // d` and `x % d = r % d`, whatever the sign of r.
    """
    if isinstance(d, Poly) and polynomial.single_term(d) is None:
        return polynomial.multiples(x, d)
    constant, terms = polynomial.parts(x)
    quotient: Int = 0
    rest: polynomial.Terms = {}
    for mono, coefficient in terms.items():
        exact = polynomial.quotient_of_term(coefficient, mono, d)
        if exact is not None:
            quotient = construct.add(quotient, exact)
        elif isinstance(d, int) and abs(coefficient) >= d:
            left = int(fmod(coefficient, d)) if abs(coefficient) < 1 << 53 else coefficient % d
            quotient = construct.add(quotient, polynomial.term((coefficient - left) // d, mono))
            rest[mono] = left
        else:
            rest[mono] = coefficient
    if isinstance(d, int):
        quotient = construct.add(quotient, constant // d)
        constant %= d
    return quotient, polynomial.build(constant, rest)


def constant_quotient(x: Int, d: Int) -> Int | None:
    """Return the constant k of `x // d = k` if `k*d <= x < (k+1)*d` is proven.

    The constant k is the one that the interval of x leaves, or 0 or -1 where d is symbolic.
    """
    lo, hi = ranges.bounds(x)
    if isinstance(d, int):
        if lo is not None and hi is not None and lo // d == hi // d:
            return lo // d
        return 0 if prover.is_within(x, d) else None
    if prover.is_within(x, d):
        return 0
    return -1 if prover.is_within(construct.add(x, d), d) else None


def common_factors(x: Int, d: Int) -> Iterator[tuple[Int, Int, Int, Int]]:
    """Yield ways to write `x = g*high + low` and `d = g*reduced`, greatest g first.

    Where `0 <= low < g` is proven:
    `x // d = high // reduced` and `x % d = g*(high % reduced) + low`.
    """
    constant, terms = polynomial.parts(x)
    for g in _candidates(terms, d):
        high: Int = 0
        low: polynomial.Terms = {}
        for mono, coefficient in terms.items():
            exact = polynomial.quotient_of_term(coefficient, mono, g)
            if exact is None:
                low[mono] = coefficient
            else:
                high = construct.add(high, exact)
        reduced = construct.floordiv(d, g)
        left = constant
        if isinstance(g, int):
            high, left = construct.add(high, constant // g), constant % g
        if high != 0:
            yield high, polynomial.build(left, low), g, reduced


def _candidates(terms: polynomial.Terms, d: Int) -> list[Int]:
    """Return divisors of `d` greater than 1 that also divide some term."""
    if isinstance(d, int):
        found = {gcd(c, d) for c in terms.values()}
        return sorted((g for g in found if g > 1), reverse=True)
    single = polynomial.single_term(d)
    if single is None:
        return []
    scale, mono = single
    factors: list[Int] = [atom for atom, _ in mono if len(mono) > 1 or scale > 1]
    if scale > 1:
        factors += sorted({g for g in (gcd(c, scale) for c in terms.values()) if g > 1})
    return factors


def div_of_div(x: Int, d: Int) -> Int | None:
    """Apply `(x // a) // d = x // (a*d)` if a > 0; an exact quotient `x // a` stays whole."""
    match x:
        case FloorDiv(num, den) if ranges.is_positive(den) and not polynomial.divides(den, num):
            return construct.floordiv(num, construct.mul(den, d))
    return None


def div_of_mod(x: Int, d: Int) -> Int | None:
    """Apply `(x % n) // d = (x // d) % (n // d)` if d divides n and n > 0."""
    if isinstance(x, Mod) and ranges.is_positive(x.den) and polynomial.divides(d, x.den):
        return construct.mod(construct.floordiv(x.num, d), construct.floordiv(x.den, d))
    return None


def div_of_xor(x: Int, d: Int) -> Int | None:
    """Apply `(a ^ b) // d = (a // d) ^ (b // d)` if d is a power of two: both are shifts."""
    if isinstance(x, Xor) and _is_power_of_two(d):
        return construct.xor(construct.floordiv(x.a, d), construct.floordiv(x.b, d))
    return None


def mod_of_xor(x: Int, d: Int) -> Int | None:
    """Apply `(a ^ b) % d = (a % d) ^ (b % d)`, d a power of two, where it saves work."""
    if not isinstance(x, Xor) or not _is_power_of_two(d):
        return None
    a, b = construct.mod(x.a, d), construct.mod(x.b, d)
    masked = [y for y in (a, b) if isinstance(y, Mod)]
    return construct.xor(a, b) if len(masked) < 2 else None


def drop_inner_mod(x: Int, d: Int) -> Int:
    """Apply `(c*(y % n) + r) % d = (c*y + r) % d` if d divides c*n.

    The two differ by a multiple of d. The result is the sum to take mod d, without such inner
    remainders.
    """
    constant, terms = polynomial.parts(x)
    if not any(len(mono) == 1 and isinstance(mono[0][0], Mod) for mono in terms):
        return x
    total: Int = constant
    changed = False
    for mono, coefficient in terms.items():
        summand = polynomial.term(coefficient, mono)
        match mono:
            case ((Mod(y, n), 1),) if polynomial.divides(d, construct.mul(coefficient, n)):
                summand, changed = construct.mul(coefficient, y), True
        total = construct.add(total, summand)
    return total if changed else x


def _is_power_of_two(d: Int) -> bool:
    return isinstance(d, int) and d > 0 and d & (d - 1) == 0
