"""The constructors of index expressions: every operation returns its normal form.

Sums and products are kept expanded, as polynomials over atoms; `//` and `%` are simplified by the
rules of `index.rules`, each of which is one proven identity. Factoring, for the sake of fewer
operations, is left to the moment of printing (`index.extraction.factor`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import isqrt as integer_isqrt

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import nodes, polynomial, rules, structure
from lego_mlir.index.nodes import (
    Expr,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mul,
    Poly,
    Sym,
    Where,
    WithForm,
    Xor,
    plain,
)
from lego_mlir.index.proofs import prover
from lego_mlir.index.ranges import bounds


def add(a: Int, b: Int) -> Int:
    """Return `a + b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, Poly) and isinstance(b, int):  # no term meets another one
        return polynomial.shifted(a, b)
    if isinstance(b, Poly) and isinstance(a, int):
        return polynomial.shifted(b, a)
    return polynomial.build(*polynomial.plus(polynomial.parts(a), polynomial.parts(b)))


def sub(a: Int, b: Int) -> Int:
    """Return `a - b`."""
    return add(a, mul(-1, b))


def mul(a: Int, b: Int) -> Int:
    """Return `a * b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(b, int):
        return polynomial.scaled(a, b)
    if isinstance(a, int):
        return polynomial.scaled(b, a)
    return polynomial.build(*polynomial.times(polynomial.parts(a), polynomial.parts(b)))


def floordiv(a: Int, b: Int) -> Int:
    """Return `a // b`, rounded towards minus infinity.

    Raises:
        LegoError: `b` is the constant 0.
    """
    if isinstance(b, int):
        if b == 0:
            raise LegoError(f"division of '{a!r}' by zero")
        if isinstance(a, int):
            return a // b
        if b < 0:
            return floordiv(mul(-1, a), -b)
    return rules.floordiv(plain(a), plain(b))


def mod(a: Int, b: Int) -> Int:
    """Return `a % b`, with the sign of `b`.

    Raises:
        LegoError: `b` is the constant 0.
    """
    if isinstance(b, int):
        if b == 0:
            raise LegoError(f"remainder of '{a!r}' by zero")
        if isinstance(a, int):
            return a % b
        if b < 0:
            return mul(-1, mod(mul(-1, a), -b))
    return rules.mod(plain(a), plain(b))


def xor(a: Int, b: Int) -> Int:
    """Return `a ^ b`, bit by bit."""
    a, b = plain(a), plain(b)
    left, right = _xor_operands(a), _xor_operands(b)
    if (isinstance(left[-1], int) and isinstance(right[-1], int)) or not set(left).isdisjoint(
        right
    ):
        return _xor_of(*left, *right)
    a, b = sorted((a, b), key=structure.order, reverse=isinstance(a, int) or isinstance(b, int))
    return a if isinstance(b, int) and b == 0 else Xor(a, b)


def _xor_of(*operands: Int) -> Int:
    """Return the exclusive or of all operands; what stands an even number of times cancels."""
    constant = 0
    odd: dict[Expr, None] = {}
    for x in operands:
        if isinstance(x, int):
            constant ^= x
        elif x in odd:
            del odd[x]
        else:
            odd[x] = None
    kept: list[Int] = sorted(odd, key=structure.order)
    if constant or not kept:
        kept.append(constant)
    return reduce(Xor, kept)


def bits(x: Int, mask: int) -> Int:
    """Return `x & mask` of two's complement by quotients and remainders.

    Args:
        x: an expression.
        mask: of any sign.
    """
    total: Int = 0
    first = 0
    while mask >> first:
        if mask >> first & 1:
            ones = ~(mask >> first)
            count = (ones & -ones).bit_length() - 1 if ones else 0
            field = floordiv(x, 1 << first)
            total = add(total, mul(mod(field, 1 << count) if count else field, 1 << first))
            if not count:
                break
            first += count
        else:
            first += 1
    return total


def _xor_operands(x: Int) -> tuple[Int, ...]:
    return (*_xor_operands(x.a), *_xor_operands(x.b)) if isinstance(x, Xor) else (x,)


def bit_and(a: Int, b: Int) -> Int:
    """Return `a & b`, bit by bit on two's complement; of conditions it is "and".

    A mask of low bits is a remainder. Other operands need no node of their own, because
    `a + b = 2*(a & b) + (a ^ b)` holds for all integers.
    """
    a, b = plain(a), plain(b)
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return a & b
    if a is b:
        return a
    if _is_condition(a) and _is_condition(b):
        return where(a, b, 0)
    if isinstance(b, int) and b >= 0 and b & (b + 1) == 0:  # 0 ... 0 1 ... 1
        return mod(a, b + 1)
    if isinstance(b, int) and b < 0 and -b & (-b - 1) == 0:  # 1 ... 1 0 ... 0
        return sub(a, mod(a, -b))
    return floordiv(sub(add(a, b), xor(a, b)), 2)


def bit_or(a: Int, b: Int) -> Int:
    """Return `a | b`, bit by bit on two's complement; of conditions it is "or"."""
    a, b = plain(a), plain(b)
    if _is_condition(a) and _is_condition(b):
        return where(a, 1, b)
    return sub(add(a, b), bit_and(a, b))


def _is_condition(x: Int) -> bool:
    """Return whether `x` is always 0 or 1."""
    return bounds(x) in ((0, 0), (0, 1), (1, 1))


def less(a: Int, b: Int) -> Int:
    """Return 1 if `a < b`, else 0; a constant where the prover can tell."""
    a, b = plain(a), plain(b)
    if prover.is_less(a, b):
        return 1
    if prover.is_nonnegative(sub(a, b)):
        return 0
    for number, other in ((a, b), (b, a)):  # 3 < x + 1 is 2 < x
        if isinstance(number, int) and isinstance(other, Poly):
            a, b = sub(a, other.constant), sub(b, other.constant)
            break
    if isinstance(b, int) and _is_negated(a):  # -x < -2 is 2 < x
        a, b = -b, mul(a, -1)
    elif isinstance(a, int) and _is_negated(b):
        a, b = mul(b, -1), -a
    return Less(a, b)


def _is_negated(x: Int) -> bool:
    """Return whether all terms of an expression have negative coefficients."""
    return isinstance(x, Poly) and all(coefficient < 0 for _, coefficient in x.terms)


def minimum(a: Int, b: Int) -> Int:
    """Return the lesser of `a` and `b`; the one of them that the prover shows to be it."""
    return _extreme(Min, a, b)


def maximum(a: Int, b: Int) -> Int:
    """Return the greater of `a` and `b`; the one of them that the prover shows to be it."""
    return _extreme(Max, a, b)


def _extreme(kind: type[Min] | type[Max], a: Int, b: Int) -> Int:
    """Return the Min or Max of all nested operands, without those that another one bounds."""
    kept: list[Int] = []
    for x in sorted({*_operands(kind, plain(a)), *_operands(kind, plain(b))}, key=structure.order):
        if not any(_surpasses(kind, y, x) for y in kept):
            kept = [*(y for y in kept if not _surpasses(kind, x, y)), x]
    return reduce(kind, kept)


def _operands(kind: type[Min] | type[Max], x: Int) -> tuple[Int, ...]:
    return (*_operands(kind, x.a), x.b) if isinstance(x, kind) else (x,)


def _surpasses(kind: type[Min] | type[Max], x: Int, y: Int) -> bool:
    """Return whether Min (Max) of the two is proven to be `x`."""
    return prover.is_nonnegative(sub(y, x) if kind is Min else sub(x, y))


def isqrt(x: Int) -> Int:
    """Return the largest `r` with `r*r <= x`, exact at every size; `x` must not be negative."""
    x = plain(x)
    if isinstance(x, int):
        return integer_isqrt(x)
    lo, hi = bounds(x)
    if lo is not None and lo >= 0 and hi is not None and integer_isqrt(lo) == integer_isqrt(hi):
        return integer_isqrt(lo)
    return ISqrt(x)


def where(condition: Int, a: Int, b: Int) -> Int:
    """Return `a` where `condition` is not 0, else `b`."""
    condition, a, b = plain(condition), plain(a), plain(b)
    if isinstance(condition, int):
        return a if condition else b
    if a is b or (isinstance(a, int) and isinstance(b, int) and a == b):
        return a
    if isinstance(a, int) and isinstance(b, int) and bounds(condition) == (0, 1):
        if (a, b) == (1, 0):
            return condition
        if (a, b) == (0, 1):
            return sub(1, condition) if isinstance(condition, Less) else xor(condition, 1)
    if isinstance(condition, Poly):  # 1 - c, as negation is written
        negated = sub(1, condition)
        if isinstance(negated, Less):
            return where(negated, b, a)
    return Where(condition, a, b)


def substitute(x: Int, values: Mapping[Sym, Int], times: Callable[[Int, Int], Int] = mul) -> Int:
    """Return `x` with symbols replaced, in normal form again.

    Args:
        x: the expression.
        values: what replaces its symbols; the others stay.
        times: makes products, by default expanded.
    """
    done: dict[Expr, Int] = {}
    replaced = values.keys()

    def stays(node: Int) -> bool:
        return isinstance(node, int) or (
            structure.is_expanded(node) and structure.symbols(node).isdisjoint(replaced)
        )

    def visit(node: Int) -> Int:
        if stays(node):
            return plain(node)
        assert not isinstance(node, int)
        if node not in done:
            done[node] = rebuild(node)
        return done[node]

    def rebuild(node: Expr) -> Int:
        match node:
            case Sym():
                return values.get(node, node)
            case WithForm(value, _):
                return visit(value)
            case Poly(constant, terms):
                kept = {mono: c for mono, c in terms if all(stays(atom) for atom, _ in mono)}
                total = polynomial.build(constant, kept)
                for mono, coefficient in terms:
                    if mono in kept:
                        continue
                    term: Int = coefficient
                    for atom, power in mono:
                        for _ in range(power):
                            term = times(term, visit(atom))
                    total = add(total, term)
                return total
            case Mul(a, b):
                return times(visit(a), visit(b))
            case nodes.Bits(inner, mask):
                return bits(visit(inner), mask)
            case _:
                operands = (visit(getattr(node, f)) for f in node.__match_args__)
                return _CONSTRUCTORS[type(node)](*operands)

    return visit(x)


_CONSTRUCTORS: dict[type[Expr], Callable[..., Int]] = {
    nodes.FloorDiv: floordiv,
    nodes.Mod: mod,
    Xor: xor,
    Min: minimum,
    Max: maximum,
    ISqrt: isqrt,
    Less: less,
    Where: where,
}
