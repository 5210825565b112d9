"""Proofs of inequalities: by intervals, by the bounds that symbols carry, at last by Z3.

`is_nonnegative(e)` first asks the interval of `e`. If that does not tell, it replaces one atom at
a time by the bound that makes `e` least: the lower bound where the atom's cofactor cannot be
negative, the upper bound where it cannot be positive. What is left once the indices are gone is
a polynomial in sizes, and its interval decides. So `i*128 + j < M` follows from `i < M // 128`,
`j < 128` and `128 | M`, with no search and no solver.

A claim that is left is evaluated at sample points, and at all points where there are few. What is
open then goes to the solver, under a limit that counts its steps, so the answer is the same
everywhere.

A failed proof does not refute: the answer `False` means that nothing was proven.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lego_mlir.index import construct, polynomial, ranges, structure
from lego_mlir.index.nodes import Expr, FloorDiv, Int, Max, Min, Mod, Sym
from lego_mlir.index.proofs import exhaustion, samples
from lego_mlir.index.work import SOLVER, charge

_DEPTH = 8
"""How many atoms a proof may eliminate, one inside another."""

_RLIMIT = 100_000
"""Z3's steps for one condition: some hundredths of a second."""


def is_nonnegative(x: Int) -> bool:
    """Return whether `x >= 0` is proven for every value of its symbols."""
    return _all_nonnegative(x)


def is_less(a: Int, b: Int) -> bool:
    """Return whether `a < b` is proven."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return _is_surely_less(a, b) or _all_nonnegative(_slack(a, b))


def is_within(x: Int, d: Int) -> bool:
    """Return whether `0 <= x < d` is proven: the condition of most rules."""
    if _is_surely_less(x, d):
        return _all_nonnegative(x)
    return _all_nonnegative(x, _slack(x, d))


def _is_surely_less(a: Int, b: Int) -> bool:
    _, top = ranges.bounds(a)
    bottom, _ = ranges.bounds(b)
    return top is not None and bottom is not None and top < bottom


def _slack(a: Int, b: Int) -> Int:
    """Return `b - a - 1`, which is not negative if and only if `a < b`."""
    return construct.sub(construct.sub(b, a), 1)


def _all_nonnegative(*claims: Int) -> bool:
    """Return whether all are proven. The cheap refutation of one spares the proof of another."""
    left = []
    for x in claims:
        lo, hi = ranges.bounds(x)
        if hi is not None and hi < 0:
            return False
        if lo is None or lo < 0:
            left.append(x)
    if not all(map(structure.is_expanded, left)):  # only expanded do terms cancel
        return _all_nonnegative(*(construct.substitute(x, {}) for x in left))
    return not any(map(_is_refuted, left)) and all(
        _is_nonnegative(x, _DEPTH) or _is_shown(x) for x in left
    )


_is_refuted = lru_cache(maxsize=1 << 14)(samples.is_refuted)


@lru_cache(maxsize=1 << 14)
def _is_shown(x: Int) -> bool:
    """Return whether all points, or the solver, show that `x >= 0`."""
    everywhere = exhaustion.is_nonnegative(x)
    if everywhere is not None:
        return everywhere
    charge(SOLVER)
    from lego_mlir.index.proofs import solver  # Z3 takes longer to load than most compilations need

    return solver.prove(nonnegative=[x], rlimit=_RLIMIT).holds is True


@lru_cache(maxsize=1 << 14)
def _is_nonnegative(x: Int, depth: int) -> bool:
    """Prove `x >= 0` by the interval, or by the bounds of one atom after another."""
    charge(1)
    lo, hi = ranges.bounds(x)
    if lo is not None and lo >= 0:
        return True
    if depth == 0 or (hi is not None and hi < 0):
        return False
    return any(
        all(_is_nonnegative(case, depth - 1) for case in cases)
        for atom in _atoms_to_eliminate(x)
        for cases in _least(x, atom, depth)
    )


def _atoms_to_eliminate(x: Int) -> list[Expr]:
    """Return the atoms whose bound is an expression, those with most symbols first."""
    _, terms = polynomial.parts(x)
    atoms = {atom for mono in terms for atom, _ in mono if _symbolic_bound(atom)}
    return sorted(atoms, key=lambda a: (-len(structure.symbols(a)), structure.order(a)))


def _symbolic_bound(atom: Expr) -> bool:
    match atom:
        case Sym(_, _, hi, _):
            return isinstance(hi, Expr)
        case Mod() | FloorDiv() | Min() | Max():
            return True
    return False


def _least(x: Int, atom: Expr, depth: int) -> Iterator[tuple[Int, ...]]:
    """Yield lower bounds of `x` without `atom`, if `x` is linear in it and the slope has a sign.

    Each is the least of some cases: in one of them `x` is no less than that case.
    """
    constant, terms = polynomial.parts(x)
    slope: polynomial.Terms = {}
    rest: polynomial.Terms = {}
    offset = 0
    for mono, coefficient in terms.items():
        powers = dict(mono)
        if atom not in powers:
            rest[mono] = coefficient
        elif powers[atom] > 1:
            return
        else:
            cofactor = polynomial.mono_over(mono, ((atom, 1),))
            assert cofactor is not None
            if cofactor:
                slope[cofactor] = coefficient
            else:
                offset = coefficient
    factor = polynomial.build(offset, slope)
    if _is_nonnegative(factor, depth - 1):
        ends = _lower(atom)
    elif _is_nonnegative(construct.mul(-1, factor), depth - 1):
        ends = _upper(atom, depth)
    else:
        return
    others: Int | None = None
    for cases in ends:
        if isinstance(factor, int) and cases == (ranges.bounds(atom)[factor < 0],):
            continue  # the interval of x knows as much
        if others is None:
            others = polynomial.build(constant, rest)
        yield tuple(construct.add(others, construct.mul(factor, end)) for end in cases)


def _lower(atom: Expr) -> Iterator[tuple[Int, ...]]:
    """Yield lower bounds of an atom: in each tuple one of the values is one."""
    match atom:
        case Max(a, b):
            yield from ((x,) for x in (a, b) if not isinstance(x, int))
        case Min(a, b):
            yield a, b
        case Mod(_, den) if ranges.is_positive(den):
            yield (0,)
            return
    constant = ranges.bounds(atom)[0]
    if constant is not None:
        yield (constant,)


def _upper(atom: Expr, depth: int) -> Iterator[tuple[Int, ...]]:
    """Yield upper bounds of an atom: in each tuple one of the values is one."""
    match atom:
        case Sym(_, _, hi, _):
            if hi is not None:
                yield (hi,)
            return
        case Mod(_, den) if ranges.is_positive(den):
            yield (construct.sub(den, 1),)
        case Min(a, b):
            yield from ((x,) for x in (a, b) if not isinstance(x, int))
        case Max(a, b):
            yield a, b
        case FloorDiv(num, den) if ranges.is_positive(den):
            for top in _tops(num, depth - 1):
                yield (construct.floordiv(top, den),)
    constant = ranges.bounds(atom)[1]
    if constant is not None:
        yield (constant,)


def _tops(x: Int, depth: int) -> Iterator[Int]:
    """Yield upper bounds of `x`, each without one more of its atoms, down to sizes alone."""
    for _ in range(max(depth, 0)):
        atoms = _atoms_to_eliminate(x)
        if not atoms:
            return
        cases = next(_least(construct.mul(-1, x), atoms[0], depth), ())
        if len(cases) != 1:
            return
        x = construct.mul(-1, cases[0])
        yield x
