"""Proofs by trying all points, where the symbols of a claim have few values.

    0 <= thread < 64:  5*((thread + 29) // 33) + 25*((thread + 29) % 33) <= 809

holds because quotient and remainder are not greatest at the same thread, which intervals do not
see. Evaluating the claim on an array of all threads takes less time than loading a solver.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lego_mlir.index import structure
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.nodes import Int, Sym
from lego_mlir.index.width import widest
from lego_mlir.index.work import charge

_MOST_POINTS = 1 << 13
_POINTS_OF_A_STEP = 16
"""Points that count as one step of `index.work`."""

_WIDEST = 1 << 62
"""No number that the evaluation passes through may be so large: int64 holds those below."""


def is_nonnegative(x: Int) -> bool | None:
    """Return whether `x >= 0` at every point; `None` if there are too many, or `x` may overflow."""
    values: dict[str, Any] = {}
    symbols = structure.symbols(x)
    for s in symbols:
        known = _values(s)
        if known is None:
            return None
        values[s.name] = known
    count = prod(map(len, values.values()))
    size = widest(x)
    has_clash = len(values) < len(symbols)  # values go by name
    if has_clash or count > _MOST_POINTS or size is None or size >= _WIDEST:
        return None
    charge(1 + count // _POINTS_OF_A_STEP)
    import numpy as np

    grid = np.meshgrid(*(np.array(known, np.int64) for known in values.values()), sparse=True)
    with np.errstate(all="raise"):
        try:
            return bool(np.all(evaluate(x, dict(zip(values, grid, strict=True))) >= 0))
        except (ArithmeticError, ValueError):  # it has no value at some point
            return None


def _values(s: Sym) -> list[int] | None:
    """Return all values of a symbol; `None` if they are many, or no numbers bound and divide it."""
    if s.lo is None or not isinstance(s.hi, int) or s.hi - s.lo >= _MOST_POINTS:
        return None
    divisors = [d for d in s.divisors if isinstance(d, int)]
    if len(divisors) < len(s.divisors) or 0 in divisors:
        return None
    return [n for n in range(s.lo, s.hi + 1) if not any(n % d for d in divisors)]
