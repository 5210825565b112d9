"""How wide the numbers are that computing an expression takes: whether 32 bits will do."""

from __future__ import annotations

from functools import lru_cache

from lego_mlir.index.nodes import Expr, Int, ISqrt, Poly
from lego_mlir.index.ranges import bounds, of_term
from lego_mlir.index.structure import children


def widest(x: Int) -> int | None:
    """Return the greatest magnitude that computing `x` passes through; `None` if unbounded."""
    return abs(x) if isinstance(x, int) else _widest(x)


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
