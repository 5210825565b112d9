"""Polynomials over atoms: the normal form of sums and products.

A polynomial in the making is a constant and a dictionary from monomial to coefficient. `build`
turns it into a node after three kinds of cancellation:

    d * (x // d)             ->  x          where d is known to divide x
    d * (x // d) + x % d     ->  x          (Table 1 of the paper, its second rule)
    x - d * (x // d)         ->  x % d

Products of sums are expanded too; `index.operands` keeps them beside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from lego_mlir.index import construct, nodes, ranges, structure
from lego_mlir.index.nodes import Expr, FloorDiv, Int, Mod, Mono, Poly, Sym
from lego_mlir.index.work import charge

Terms: TypeAlias = dict[Mono, int]
Parts: TypeAlias = tuple[int, Terms]


def parts(x: Int) -> Parts:
    """Return `x` as constant and terms; the dictionary is the caller's to change."""
    x = nodes.plain(x)
    if isinstance(x, int):
        return x, {}
    if isinstance(x, Poly):
        return x.constant, dict(x.terms)
    lo, hi = ranges.bounds(x)
    if lo is not None and lo == hi:  # one value only: the index of a dimension of size 1
        return lo, {}
    return 0, {((x, 1),): 1}


def plus(a: Parts, b: Parts) -> Parts:
    """Return the sum of two polynomials."""
    terms = dict(a[1])
    for mono, coefficient in b[1].items():
        terms[mono] = terms.get(mono, 0) + coefficient
    return a[0] + b[0], terms


def times(a: Parts, b: Parts) -> Parts:
    """Return the product of two polynomials, expanded."""
    charge(_effort(a[1]) * len(b[1]) + len(a[1]) * _effort(b[1]))
    terms: Terms = {}
    constant = 0
    for left, p in [((), a[0]), *a[1].items()]:
        for right, q in [((), b[0]), *b[1].items()]:
            if not p * q:
                continue
            mono = mono_times(left, right)
            if mono:
                terms[mono] = terms.get(mono, 0) + p * q
            else:
                constant += p * q
    return constant, terms


def _effort(terms: Terms) -> int:
    """Return about how many atoms the terms have: their number times the atoms of the first."""
    return len(terms) * len(next(iter(terms), ()))


def mono_times(a: Mono, b: Mono) -> Mono:
    """Return the product of two monomials, its atoms in order."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: structure.order(item[0])))


def mono_over(a: Mono, b: Mono) -> Mono | None:
    """Return the quotient of two monomials, or `None` where `b` does not divide `a`."""
    if not b:
        return a
    powers = dict(a)
    for atom, power in b:
        rest = powers.get(atom, 0) - power
        if rest < 0:
            return None
        powers[atom] = rest
    return tuple((atom, power) for atom, power in powers.items() if power)


def _without(mono: Mono, atom: Expr) -> Mono:
    """Return the quotient of a monomial by one of its atoms."""
    return () if len(mono) == 1 and mono[0][1] == 1 else mono_over(mono, ((atom, 1),)) or ()


def term(coefficient: int, mono: Mono) -> Int:
    """Return `coefficient * mono` as an expression."""
    return build(0, {mono: coefficient}) if mono else coefficient


def single_term(x: Int) -> tuple[int, Mono] | None:
    """Return `x` as coefficient and monomial if it is one term, else `None`."""
    if isinstance(x, int):
        return x, ()
    if isinstance(x, Poly):
        return (x.terms[0][1], x.terms[0][0]) if not x.constant and len(x.terms) == 1 else None
    return 1, ((x, 1),)


def build(constant: int, terms: Terms) -> Int:
    """Return the node of a polynomial, after cancellation."""
    charge(1 + _effort(terms))
    if 0 in terms.values():
        terms = {mono: c for mono, c in terms.items() if c}
    if not terms:
        return constant
    cancelled = _cancelled(terms)
    if cancelled is not None:
        kept, replacement = cancelled
        return construct.add(build(constant, kept), replacement)
    if len(terms) == 1:
        ((mono, coefficient),) = terms.items()
        if constant == 0 and coefficient == 1 and len(mono) == 1 and mono[0][1] == 1:
            return mono[0][0]
        return Poly(constant, tuple(terms.items()))
    ordered = sorted(terms.items(), key=lambda item: structure.mono_order(item[0]))
    return Poly(constant, tuple(ordered))


def shifted(x: Poly, by: int) -> Int:
    """Return `x + by`: what `x` is a sum of has cancelled already."""
    constant = x.constant + by
    if constant == 0 and len(x.terms) == 1:
        return build(0, dict(x.terms))
    return Poly(constant, x.terms)


def scaled(x: Int, by: int) -> Int:
    """Return `x * by`."""
    if by == 0:
        return 0
    constant, terms = parts(x)
    return build(constant * by, {mono: c * by for mono, c in terms.items()})


def _cancelled(terms: Terms) -> tuple[Terms, Int] | None:
    """Return the terms that one cancellation leaves, and what replaces the others."""
    kinds = {type(atom) for mono in terms for atom, _ in mono}
    found = None
    if FloorDiv in kinds:
        found = _cancel_exact_quotient(terms)
    if found is None and Mod in kinds and len(terms) > 1:
        found = _cancel_split(terms)
    if found is None and FloorDiv in kinds:
        found = _cancel_multiple(terms)
    return found


def _cancel_exact_quotient(terms: Terms) -> tuple[Terms, Int] | None:
    """Apply `c*m*d*(x // d) -> c*m*x` where d divides x: facts such as `128 | M` say so."""
    for mono, coefficient in terms.items():
        for atom, _ in mono:
            if not isinstance(atom, FloorDiv):
                continue
            divisor = single_term(atom.den)
            if divisor is None or coefficient % divisor[0]:
                continue
            cofactor = mono_over(_without(mono, atom), divisor[1])
            if cofactor is None or not divides(atom.den, atom.num):
                continue
            kept = {m: c for m, c in terms.items() if m != mono}
            replacement = construct.mul(term(coefficient // divisor[0], cofactor), atom.num)
            return kept, replacement
    return None


def _cancel_split(terms: Terms) -> tuple[Terms, Int] | None:
    """Apply `c*m*(x % d) + c*m*d*(x // d) -> c*m*x`, also where the quotient is taken mod b.

    The second form is `x % d + d*((x // d) % b) -> x % (d*b)`, true for every positive d and b.
    """
    coefficients = set(terms.values())
    for mono, coefficient in terms.items():
        for atom, _ in mono:
            if not isinstance(atom, Mod):
                continue
            multiples = (
                (coefficient * atom.den,)
                if isinstance(atom.den, int)
                else _scaled(atom.den, coefficient, ()).values()
            )
            if coefficients.isdisjoint(multiples):
                continue
            cofactor = _without(mono, atom)
            for partner, whole in _quotients(atom, terms):
                multiple = _scaled(atom.den, coefficient, mono_times(cofactor, ((partner, 1),)))
                if all(terms.get(m) == c for m, c in multiple.items()):
                    kept = {m: c for m, c in terms.items() if m != mono and m not in multiple}
                    return kept, construct.mul(term(coefficient, cofactor), whole)
    return None


def _cancel_multiple(terms: Terms) -> tuple[Terms, Int] | None:
    """Apply `c*m*x - c*m*d*(x // d) -> c*m*(x % d)`, with x all of a sum or nothing."""
    for mono, coefficient in terms.items():
        for atom, _ in mono:
            if not isinstance(atom, FloorDiv):
                continue
            divisor = single_term(atom.den)
            if divisor is None or coefficient % divisor[0]:
                continue
            cofactor = mono_over(_without(mono, atom), divisor[1])
            if cofactor is None:
                continue
            scale = -coefficient // divisor[0]
            first, c = next(iter(parts(atom.num)[1].items()), ((), 0))
            if c and terms.get(mono_times(cofactor, first)) != scale * c:
                continue
            whole = _scaled(atom.num, scale, cofactor)
            constant = whole.pop((), 0)
            if all(terms.get(m) == c for m, c in whole.items()):
                kept = {m: c for m, c in terms.items() if m != mono and m not in whole}
                remainder = construct.mod(atom.num, atom.den)
                replacement = construct.mul(term(scale, cofactor), remainder)
                return kept, construct.sub(replacement, constant)
    return None


def _quotients(remainder: Mod, terms: Terms) -> Iterable[tuple[Expr, Int]]:
    """Yield what completes `x % d`, its quotient or that quotient mod b, and the whole then."""
    quotient = construct.floordiv(remainder.num, remainder.den)
    if isinstance(quotient, Expr):
        yield quotient, remainder.num
    if not ranges.is_positive(remainder.den):
        return
    for mono in terms:
        for atom, _ in mono:
            if isinstance(atom, Mod) and atom.num is quotient and ranges.is_positive(atom.den):
                yield atom, construct.mod(remainder.num, construct.mul(remainder.den, atom.den))


def _scaled(x: Int, coefficient: int, mono: Mono) -> Terms:
    """Return the terms of `coefficient * mono * x`, a constant under the monomial `()`."""
    constant, terms = parts(x)
    if constant:
        terms[()] = constant
    return {mono_times(mono, m): coefficient * c for m, c in terms.items()}


def multiples(x: Int, d: Poly) -> tuple[Int, Int]:
    """Return q and r of `x = d*q + r` for a sum d, found term by term.

    With d = N + 2, `i*N + 2*i + j` gives q = i and r = j: the row and the column of an array
    with a margin.
    """
    rest = _scaled(x, 1, ())
    leading, scale = max(
        d.terms, key=lambda t: (sum(p for _, p in t[0]), structure.mono_order(t[0]))
    )
    quotient: Int = 0
    for mono, coefficient in list(rest.items()):
        exact = exact_term(coefficient, mono, term(scale, leading))
        if exact is None:
            continue
        multiple = _scaled(d, *exact)
        if all(c * rest.get(m, 0) >= c * c for m, c in multiple.items()):
            quotient = construct.add(quotient, term(*exact))
            for m, c in multiple.items():
                rest[m] -= c
    return quotient, build(rest.pop((), 0), rest)


def divides(d: Int, x: Int) -> bool:
    """Return whether `d` is known to divide `x`, by coefficients, factors and divisors."""
    if isinstance(x, int):
        return isinstance(d, int) and d != 0 and x % d == 0
    constant, terms = parts(x)
    if constant and not divides(d, constant):
        return False
    return all(exact_term(c, mono, d) is not None for mono, c in terms.items())


def quotient_of_term(coefficient: int, mono: Mono, d: Int) -> Int | None:
    """Return `coefficient * mono / d` where that is known to be exact, else `None`."""
    exact = exact_term(coefficient, mono, d)
    return None if exact is None else term(*exact)


def exact_term(coefficient: int, mono: Mono, d: Int) -> tuple[int, Mono] | None:
    """Return the exact quotient of a term as coefficient and monomial, else `None`.

    Where a symbol M is known to be a multiple of g, `c*M` is also `c*g*(M // g)`: the exact
    quotient `M // g` is an atom of its own, and `d` may divide it or the rest.
    """
    charge(1 + len(mono))
    divisor = single_term(d)
    if divisor is None or divisor[0] == 0:
        return None
    direct = _term_over(coefficient, mono, divisor)
    if direct is not None:
        return direct
    for atom, _ in mono:
        if not isinstance(atom, Sym):
            continue
        for known in sorted(atom.divisors, key=structure.order, reverse=True):
            factor = single_term(known)
            rest = mono_over(mono, ((atom, 1),))
            if factor is None or rest is None:
                continue
            opened = mono_times(rest, mono_times(factor[1], ((FloorDiv(atom, known), 1),)))
            quotient = exact_term(coefficient * factor[0], opened, d)
            if quotient is not None:
                return quotient
    return None


def _term_over(coefficient: int, mono: Mono, divisor: tuple[int, Mono]) -> tuple[int, Mono] | None:
    rest = mono_over(mono, divisor[1])
    if rest is None or coefficient % divisor[0]:
        return None
    return coefficient // divisor[0], rest
