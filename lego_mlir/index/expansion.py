"""Whether products of sums are expanded while expressions are derived.

Normally they are. `index.extraction.forms` derives an expression a second time with such products
kept as `Mul` nodes. The operators of a user's permutation have no argument for that, so it is a
context variable, and this module is the only one that sets or reads it. What depends on it says so:

- `construct.mul` asks `keeps_product`;
- `rules.floordiv` and `rules.mod` take it as an argument, so their caches keep the two apart;
- the prover compares expanded expressions only, by `expanded`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from lego_mlir.index.nodes import Poly

Result = TypeVar("Result")


@dataclass(slots=True)
class Derivation:
    """One derivation.

    Attributes:
        expands: whether it expands products of sums.
        multiplied: whether it has met one.
    """

    expands: bool
    multiplied: bool = False


_derivation: ContextVar[Derivation | None] = ContextVar("derivation", default=None)


def is_deriving() -> bool:
    """Return whether a derivation is under way."""
    return _derivation.get() is not None


def is_expanding() -> bool:
    """Return whether products of sums are expanded now."""
    current = _derivation.get()
    return current is None or current.expands


def keeps_product(a: Poly, b: Poly) -> bool:
    """Return whether `a * b` stays a product: of two sums, in a derivation that does not expand.

    The derivation notes that it has met such a product.
    """
    current = _derivation.get()
    if current is None or _is_term(a) or _is_term(b):
        return False
    current.multiplied = True
    return not current.expands


def _is_term(x: Poly) -> bool:
    return not x.constant and len(x.terms) == 1


def expanded(make: Callable[[], Result]) -> Result:
    """Return what `make` derives with every product expanded, whatever derivation calls this."""
    return make() if is_expanding() else during(Derivation(expands=True), make)


def apart(make: Callable[[], Result]) -> Result:
    """Return what `make` derives outside of any derivation, whatever derivation calls this."""
    return make() if _derivation.get() is None else during(None, make)


def during(derivation: Derivation | None, make: Callable[[], Result]) -> Result:
    """Return what `make` derives as part of `derivation`."""
    token = _derivation.set(derivation)
    try:
        return make()
    finally:
        _derivation.reset(token)
