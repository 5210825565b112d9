"""Whether a number divides a polynomial wherever its atoms are integers: 2 divides x*(x + 1)."""

from __future__ import annotations

from itertools import product

from lego_mlir.index import polynomial
from lego_mlir.index.nodes import Int
from lego_mlir.index.work import charge

_MOST_REMAINDERS = 1 << 12
"""Of all atoms together, that are tried."""


def divides_every_value(d: Int, x: Int) -> bool:
    """Return whether the number `d` divides `x` for all remainders of the atoms of `x`."""
    constant, terms = polynomial.parts(x)
    atoms = list({atom for mono in terms for atom, _ in mono})
    if not isinstance(d, int) or not d > 0 or d ** len(atoms) > _MOST_REMAINDERS:
        return False
    charge(d ** len(atoms))
    for remainders in product(range(d), repeat=len(atoms)):
        at = dict(zip(atoms, remainders, strict=True))
        total = constant
        for mono, coefficient in terms.items():
            term = coefficient
            for atom, power in mono:
                term *= at[atom] ** power
            total += term
        if total % d:
            return False
    return True
