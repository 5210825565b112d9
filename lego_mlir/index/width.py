"""How wide the numbers are that computing an expression takes: whether 32 bits will do."""

from __future__ import annotations

from functools import lru_cache

from lego_mlir.index import polynomial
from lego_mlir.index.nodes import Expr, Int, ISqrt, Poly, plain
from lego_mlir.index.ranges import bounds, is_nonnegative, of_term
from lego_mlir.index.structure import children


def widest(x: Int) -> int | None:
    """Return the greatest magnitude that computing `x` passes through; `None` if unbounded."""
    return abs(x) if isinstance(x, int) else _widest(x)


def ascends(x: Int, limit: int) -> bool:
    """Return whether `x` is a sum of products of what is below a limit and not negative.

    Then nothing that computing it passes through is above `x`, unless a factor is 0. Where `x` is
    below the limit, so is all of it; modulo a power of two, the limit, a factor of 0 gives 0.
    """
    constant, terms = polynomial.parts(plain(x))
    if constant < 0 or any(coefficient < 0 for coefficient in terms.values()):
        return False
    atoms = {atom for mono in terms for atom, _ in mono}
    return all(
        is_nonnegative(atom) and (size := widest(atom)) is not None and size < limit
        for atom in atoms
    )


@lru_cache(maxsize=1 << 14)
def _widest(x: Expr) -> int | None:
    own = _own(x)
    if own is None:
        return None
    widths = [own]
    for child in children(x):
        inner = widest(child)
        if inner is None:
            return None
        widths.append(inner)
    return max(widths)


def _own(x: Expr) -> int | None:
    """Return the same among the values that the last operations alone compute."""
    lo, hi = bounds(x)
    if lo is None or hi is None:
        return None
    width = max(abs(lo), abs(hi))
    match x:
        case Poly(constant, terms):
            # Every partial sum lies between the sum of all negative and of all positive terms.
            spread = abs(constant)
            for mono, c in terms:
                least, most = of_term(c, mono)
                if least is None or most is None:
                    return None
                spread += max(abs(least), abs(most))
            return max(width, spread)
        case ISqrt(a):
            return max(width, (bounds(a)[1] or 0) * 2 + 4)
    return width
