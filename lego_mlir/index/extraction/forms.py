"""The cost model's choice between several forms of one expression.

Sums and products are kept expanded, so that terms cancel. Two other forms may cost less:

    s*(s + 1)                     whole, where s*s + s is a product of sums expanded
    x + 248*(x // 8)              for 256*(x // 8) + x % 8: no remainder to take
    x // 512 & 6                  for 2*(x // 1024 % 4): one shift, not two

So operands carry both forms through a derivation (`index.operands`), remainders are taken out
where their quotient is there too, and the cheapest form is what will be computed (papers/lego,
section 4, counts operations to choose between expanded and unexpanded).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lego_mlir.index import construct, polynomial
from lego_mlir.index.extraction.bit_fields import with_bit_fields
from lego_mlir.index.extraction.cost import weight
from lego_mlir.index.nodes import Expr, Int, Mod, Mono, Poly, Spelled, plain
from lego_mlir.index.operands import Operand, form_of, operand
from lego_mlir.index.structure import mono_order
from lego_mlir.index.width import widest
from lego_mlir.index.work import measured

Derived = TypeVar("Derived", bound="Int | tuple[Int, ...]")


def derive(function: Callable[..., Derived], *index: Any) -> Derived:
    """Return what a function makes of an index, in the form that costs least.

    Args:
        function: builds one expression, or several in a tuple, with the operators and
            `index.functions`. (Constructors take operands for their normal form.)
        index: its arguments; expressions, and what else the function takes.
    """
    if any(isinstance(x, Operand) for x in index):  # of a larger derivation, which will choose
        return function(*index)
    with measured():
        derived = function(*map(operand, index))
        if isinstance(derived, tuple):
            return _cheapest_form(derived)  # type: ignore[return-value]
        (chosen,) = _cheapest_form((derived,))
        return chosen  # type: ignore[return-value]


def _cheapest_form(derived: tuple[Int, ...]) -> tuple[Int, ...]:
    """Return the expressions of a finished derivation, in the form that costs least."""
    normal, unexpanded = tuple(map(plain, derived)), tuple(map(form_of, derived))
    found = [normal] if unexpanded == normal else [normal, unexpanded]
    found += [other for form in found if (other := _without_remainders(form)) != form]
    found += [o for f in found if (o := tuple(map(with_bit_fields, f))) != f]
    return normal if len(found) == 1 else _cheapest(found)


def _cheapest(found: list[tuple[Int, ...]]) -> tuple[Int, ...]:
    """Return the first of the forms, the normal one, spelled as the cheapest."""
    normal = found[0]
    form = min((f for f in found if not _widens(normal, f)), key=weight)
    return tuple(_spelled(n, f) for n, f in zip(normal, form, strict=True))


def _widens(normal: tuple[Int, ...], form: tuple[Int, ...]) -> bool:
    """Return whether a form, but not the normal one, needs more than 32 bits on the way."""

    def fits(x: Int) -> bool:
        most = widest(x)
        return most is not None and most < 1 << 31

    return any(fits(n) and not fits(f) for n, f in zip(normal, form, strict=True))


def _spelled(value: Int, form: Int) -> Int:
    different = isinstance(value, Expr) and isinstance(form, Expr) and value is not form
    return Spelled(value, form) if different else value


def _without_remainders(form: tuple[Int, ...]) -> tuple[Int, ...]:
    """Return the form without the remainders whose quotients it has too."""
    return tuple(_telescoped(x) if isinstance(x, Poly) else x for x in form)


def _telescoped(x: Poly) -> Poly:
    """Rewrite `a*(y // d) + b*(y % d) -> b*y + (a - b*d)*(y // d)`, for constants a, b and d.

    The constructors are not used, because they would put the remainder back.
    """
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
