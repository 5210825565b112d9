"""Whether a number divides an expression wherever its atoms are integers: 2 divides x*(x + 1)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from math import prod

from lego_mlir.index import polynomial
from lego_mlir.index.nodes import Expr, Int, Max, Min, Where
from lego_mlir.index.work import charge

_MOST_REMAINDERS = 1 << 12
"""Of all atoms together, that are tried."""


def divides_every_value(d: Int, x: Int) -> bool:
    """Return whether the number `d` divides `x` for all remainders of the atoms of `x`."""
    return isinstance(d, int) and 0 < d <= _MOST_REMAINDERS and set(_remainders(x, d)) == {0}


def _remainders(x: Int, d: int) -> Collection[int]:
    """Return the remainders by `d` that `x` may have, and perhaps others."""
    constant, terms = polynomial.parts(x)
    atoms = {atom: _remainders_of(atom, d) for mono in terms for atom, _ in mono}
    tried = prod(map(len, atoms.values()))
    if tried > _MOST_REMAINDERS:
        return range(d)
    charge(tried)
    found = set()
    for remainders in product(*atoms.values()):
        at = dict(zip(atoms, remainders, strict=True))
        total = constant
        for mono, coefficient in terms.items():
            total += coefficient * prod(at[atom] ** power for atom, power in mono)
        found.add(total % d)
    return found


def _remainders_of(atom: Expr, d: int) -> Collection[int]:
    """Return the remainders that an atom may have: those of what it chooses from, or all."""
    match atom:
        case Where(_, a, b) | Min(a, b) | Max(a, b):
            return {*_remainders(a, d), *_remainders(b, d)}
    return range(d)
