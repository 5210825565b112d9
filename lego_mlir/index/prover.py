"""Proofs of inequalities, by intervals and by the bounds that symbols carry.

`is_nonnegative(e)` first asks the interval of `e`. If that does not tell, it replaces one atom at
a time by the bound that makes `e` least: the lower bound where the atom's cofactor cannot be
negative, the upper bound where it cannot be positive. What is left once the indices are gone is
a polynomial in sizes, and its interval decides. So `i*128 + j < M` follows from `i < M // 128`,
`j < 128` and `128 | M`, with no search and no solver.

A failed proof says nothing: the answer is then `False`, never a guess.
"""

from __future__ import annotations

from functools import lru_cache

from lego_mlir.index import construct, nodes, polynomial, ranges
from lego_mlir.index.nodes import Expr, FloorDiv, Int, Max, Min, Mod, Sym

_DEPTH = 8
"""How many atoms a proof may eliminate, one inside another."""


def is_nonnegative(x: Int) -> bool:
    """Whether `x >= 0` is proven for every value of its symbols."""
    lo, hi = ranges.bounds(x)
    if lo is not None and lo >= 0:
        return True
    if hi is not None and hi < 0:
        return False
    return _is_nonnegative(x, _DEPTH)


def is_less(a: Int, b: Int) -> bool:
    """Whether `a < b` is proven."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    _, top = ranges.bounds(a)
    bottom, _ = ranges.bounds(b)
    if top is not None and bottom is not None and top < bottom:
        return True
    return is_nonnegative(construct.sub(construct.sub(b, a), 1))


def is_within(x: Int, d: Int) -> bool:
    """Whether `0 <= x < d` is proven: the condition of most rules."""
    return is_nonnegative(x) and is_less(x, d)


@lru_cache(maxsize=1 << 14)
def _is_nonnegative(x: Int, depth: int) -> bool:
    lo, hi = ranges.bounds(x)
    if lo is not None and lo >= 0:
        return True
    if depth == 0 or (hi is not None and hi < 0):
        return False
    for atom in _atoms_to_eliminate(x):
        least = _least(x, atom, depth)
        if least is not None and _is_nonnegative(least, depth - 1):
            return True
    return False


def _atoms_to_eliminate(x: Int) -> list[Expr]:
    """The atoms with a bound that is itself an expression, those that depend on most first."""
    _, terms = polynomial.parts(x)
    atoms = {atom for mono in terms for atom, _ in mono if _symbolic_bound(atom)}
    return sorted(atoms, key=lambda a: (-len(nodes.symbols(a)), nodes.order(a)))


def _symbolic_bound(atom: Expr) -> bool:
    match atom:
        case Sym(_, _, hi, _):
            return isinstance(hi, Expr)
        case Mod() | FloorDiv() | Min() | Max():
            return True
    return False


def _least(x: Int, atom: Expr, depth: int) -> Int | None:
    """A lower bound of `x` without `atom`, where `x` is linear in it and the slope has a sign."""
    constant, terms = polynomial.parts(x)
    slope: polynomial.Terms = {}
    rest: polynomial.Terms = {}
    offset = 0
    for mono, coefficient in terms.items():
        powers = dict(mono)
        if atom not in powers:
            rest[mono] = coefficient
        elif powers[atom] > 1:
            return None
        else:
            cofactor = polynomial.mono_over(mono, ((atom, 1),))
            assert cofactor is not None
            if cofactor:
                slope[cofactor] = coefficient
            else:
                offset = coefficient
    factor = polynomial.build(offset, slope)
    if _is_nonnegative(factor, depth - 1):
        bound = _lower(atom)
    elif _is_nonnegative(construct.mul(-1, factor), depth - 1):
        bound = _upper(atom, depth)
    else:
        return None
    if bound is None:
        return None
    return construct.add(polynomial.build(constant, rest), construct.mul(factor, bound))


def _lower(atom: Expr) -> Int | None:
    match atom:
        case Max(a, b):
            return b if isinstance(a, int) else a
        case Mod(_, den) if ranges.is_positive(den):
            return 0
    return ranges.bounds(atom)[0]


def _upper(atom: Expr, depth: int) -> Int | None:
    match atom:
        case Sym(_, _, hi, _):
            return hi
        case Mod(_, den) if ranges.is_positive(den):
            return construct.sub(den, 1)
        case Min(a, b):
            return b if isinstance(a, int) else a
        case FloorDiv(num, den) if ranges.is_positive(den):
            top = _greatest(num, depth - 1)
            return None if top is None else construct.floordiv(top, den)
    return ranges.bounds(atom)[1]


def _greatest(x: Int, depth: int) -> Int | None:
    """An upper bound of `x` in terms of sizes alone, where one is found."""
    for _ in range(max(depth, 0)):
        atoms = _atoms_to_eliminate(x)
        if not atoms:
            return x
        least = _least(construct.mul(-1, x), atoms[0], depth)
        if least is None:
            return None
        x = construct.mul(-1, least)
    return None
