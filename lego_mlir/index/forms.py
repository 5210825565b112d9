"""The cost model's choice between several forms of one expression.

Sums and products are kept expanded, so that terms cancel. Two other forms may cost less:

    s*(s + 1)                     whole, where s*s + s is a product of sums expanded
    x + 248*(x // 8)              for 256*(x // 8) + x % 8: no remainder to take

So what multiplies sums is derived once more with such products kept whole, remainders are taken
out where their quotient is there too, and the cheapest form is what will be computed (papers/lego,
section 4, counts operations to choose between expanded and unexpanded).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from lego_mlir.index.nodes import Expr, Int, Mod, Mono, Poly, Spelled, mono_order
from lego_mlir.index.work import measured

Derived = TypeVar("Derived", bound="Int | tuple[Int, ...]")
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
    """What `make` derives, in the form that costs least.

    Args:
        make: builds expressions with the operators and constructors; it is called once or twice.
    """
    if _derivation.get() is not None:  # a part of a larger derivation, which will choose
        return make()
    with measured():
        return _cheapest_form(make)


def _cheapest_form(make: Callable[[], Derived]) -> Derived:
    """What `make` derives, in the form that costs least; the outermost derivation."""
    first = _Derivation(expands=True)
    normal = _with(first, make)
    found = [_each(normal)]
    if first.multiplied:
        found.append(_each(_with(_Derivation(expands=False), make)))
    found += [other for form in found if (other := _without_remainders(form)) != form]
    if len(found) == 1:
        return normal
    chosen = _cheapest(found)
    return chosen if isinstance(normal, tuple) else chosen[0]  # type: ignore[return-value]


def expanded(make: Callable[[], Result]) -> Result:
    """What `make` gives where every product is expanded, whatever goes on around."""
    return make() if expanding() else _with(_Derivation(expands=True), make)


def apart(make: Callable[[], Result]) -> Result:
    """What `make` gives where nothing else is being derived, whatever goes on around."""
    return make() if _derivation.get() is None else _with(None, make)


def _with(derivation: _Derivation | None, make: Callable[[], Result]) -> Result:
    token = _derivation.set(derivation)
    try:
        return make()
    finally:
        _derivation.reset(token)


def _each(derived: Int | tuple[Int, ...]) -> tuple[Int, ...]:
    return derived if isinstance(derived, tuple) else (derived,)


def _cheapest(found: list[tuple[Int, ...]]) -> tuple[Int, ...]:
    """The first of the forms, the normal one, spelled as the cheapest."""
    from lego_mlir.index.cost import weight  # it needs the nodes' constructors, and they this

    normal = found[0]
    form = min((f for f in found if not _widens(normal, f)), key=weight)
    return tuple(_spelled(n, f) for n, f in zip(normal, form, strict=True))


def _widens(normal: tuple[Int, ...], form: tuple[Int, ...]) -> bool:
    """Whether a form needs more than 32 bits on the way, and the normal one does not."""
    from lego_mlir.index.width import widest

    def fits(x: Int) -> bool:
        most = widest(x)
        return most is not None and most < 1 << 31

    return any(fits(n) and not fits(f) for n, f in zip(normal, form, strict=True))


def _spelled(value: Int, form: Int) -> Int:
    different = isinstance(value, Expr) and isinstance(form, Expr) and value is not form
    return Spelled(value, form) if different else value


def _without_remainders(form: tuple[Int, ...]) -> tuple[Int, ...]:
    """The form with the remainders gone that a quotient makes good."""
    return tuple(_telescoped(x) if isinstance(x, Poly) else x for x in form)


def _telescoped(x: Poly) -> Poly:
    """`a*(y // d) + b*(y % d) -> b*y + (a - b*d)*(y // d)`, for constants a, b and d.

    Not by the constructors: they would put the remainder back.
    """
    from lego_mlir.index import construct, polynomial

    total: polynomial.Parts = (x.constant, dict(x.terms))
    for mono, _ in x.terms:
        match mono:
            case ((Mod(num, int(den)), 1),) if den > 0 and mono in total[1]:
                quotient = construct.floordiv(num, den)
                if not isinstance(quotient, Expr) or ((quotient, 1),) not in total[1]:
                    continue
                coefficient = total[1].pop(mono)  # its own may be a quotient that has changed
                whole = polynomial.times(polynomial.parts(num), (coefficient, {}))
                total = polynomial.plus(total, whole)
                total = polynomial.plus(total, (0, {((quotient, 1),): -coefficient * den}))
    terms = tuple(sorted(((m, c) for m, c in total[1].items() if c), key=_order_of))
    return Poly(total[0], terms)


def _order_of(term: tuple[Mono, int]) -> tuple[object, ...]:
    return mono_order(term[0])
