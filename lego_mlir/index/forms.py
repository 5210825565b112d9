"""Expanded or not: the cost model's choice between two forms of one expression.

Sums and products are kept expanded, so that terms cancel. Where two sums were multiplied on the
way, `s*(s + 1)`, that may cost more than it saves: expanded, it is `s*s + s`, and s may be a sum
itself. So what multiplies sums is derived once more with such products kept whole, and the
cheaper form is what will be computed (papers/lego, section 4: "the cost model keeps the cheaper").
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from lego_mlir.index.nodes import Expr, Int, Poly, Spelled

Derived = TypeVar("Derived", Int, "tuple[Int, ...]")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Derivation:
    """One derivation: whether it expands, and whether it has met a product of sums."""

    expands: bool
    multiplied: bool = False


_derivation: ContextVar[_Derivation | None] = ContextVar("derivation", default=None)


def expanding() -> bool:
    """Whether products of sums are expanded now."""
    current = _derivation.get()
    return current is None or current.expands


def keeps_product(a: Poly, b: Poly) -> bool:
    """Whether `a * b` stays a product now: two sums, in a derivation that does not expand."""
    current = _derivation.get()
    if current is None or _is_term(a) or _is_term(b):
        return False
    current.multiplied = True
    return not current.expands


def _is_term(x: Poly) -> bool:
    return not x.constant and len(x.terms) == 1


def derive(make: Callable[[], Derived]) -> Derived:
    """What `make` derives, in the form that costs less.

    Args:
        make: builds expressions with the operators and constructors; it is called once or twice.
    """
    if _derivation.get() is not None:  # a part of a larger derivation, which will choose
        return make()
    first = _Derivation(expands=True)
    normal = _with(first, make)
    return _cheaper(normal, make) if first.multiplied else normal


def expanded(make: Callable[[], Result]) -> Result:
    """What `make` gives where every product is expanded, whatever goes on around."""
    return make() if expanding() else _with(_Derivation(expands=True), make)


def _with(derivation: _Derivation, make: Callable[[], Result]) -> Result:
    token = _derivation.set(derivation)
    try:
        return make()
    finally:
        _derivation.reset(token)


def _cheaper(normal: Derived, make: Callable[[], Derived]) -> Derived:
    from lego_mlir.index.cost import weight  # it needs the nodes' constructors, and they this

    whole = _with(_Derivation(expands=False), make)
    if weight(whole) >= weight(normal):
        return normal
    if isinstance(normal, tuple):
        assert isinstance(whole, tuple)
        return tuple(_spelled(n, w) for n, w in zip(normal, whole, strict=True))
    assert not isinstance(whole, tuple)
    return _spelled(normal, whole)


def _spelled(value: Int, form: Int) -> Int:
    different = isinstance(value, Expr) and isinstance(form, Expr) and value is not form
    return Spelled(value, form) if different else value
