"""Integer expressions of SymPy's, printed as index expressions.

`IndexPrinter` is one of SymPy's own printers: it has one method for each class of SymPy's, and a
class that it does not know may bring the method `_lego_index(printer)`.

SymPy's quotients are rational. Inside of `floor` and `ceiling` any quotient may stand. Elsewhere a
quotient has to be proven exact: by a fact of a symbol (`M/BM` where BM divides M), or for every
remainder of its symbols (`x*(x + 1)/2`).
"""

# SymPy looks for methods by the names of its classes.
# ruff: noqa: N802

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import sympy
from sympy.printing.printer import Printer

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import functions, polynomial
from lego_mlir.index.nodes import Expr, Int, plain
from lego_mlir.index.ranges import is_positive
from lego_mlir.index.sympy_bridge.exactness import divides_every_value
from lego_mlir.index.sympy_bridge.symbols import symbol
from lego_mlir.index.work import charge, measured

_minimum: Callable[[Int, Int], Int] = functions.minimum
_maximum: Callable[[Int, Int], Int] = functions.maximum
_isqrt: Callable[[Int], Int] = functions.isqrt
_where: Callable[[Int, Int, Int], Int] = functions.where

_MOST_EXPONENT = 63
"""Of a power whose base is no number: 2 to a greater one does not fit 64 bits."""

_MOST_BITS = 1 << 12
"""Of a number."""


def from_sympy(x: Any, symbols: Mapping[sympy.Symbol, Int] | None = None) -> Int:
    """Return a SymPy expression as an index expression, simplified.

    Args:
        x: any integer or boolean expression; a boolean is 1 or 0.
        symbols: what the symbols stand for; others become symbols of the same name, with the
            sign of their SymPy assumptions.

    Raises:
        LegoError: the expression is not known to be an integer, or has a function that is not
            known here.
    """
    return x if type(x) is int else IndexPrinter(symbols).to_index(x)


class IndexPrinter(Printer):  # type: ignore[misc]
    """Prints SymPy expressions as index expressions.

    It builds them with the operators, so that what symbols stand for may be operands of a
    derivation (`index.extraction.forms`).

    Args:
        symbols: as `from_sympy` takes them.
    """

    printmethod = "_lego_index"

    def __init__(self, symbols: Mapping[sympy.Symbol, Int] | None = None) -> None:
        super().__init__()
        self.symbols = dict(symbols or {})
        self._made: dict[str, Any] = {}
        self._known: dict[Any, Int] = {}
        self._whole: Any = None

    def to_index(self, x: Any) -> Int:
        """Return the index expression of `x`.

        Raises:
            LegoError: as `from_sympy`.
        """
        self._whole, self._known = x, {}
        try:
            with measured():
                return self._of(x)
        except RecursionError:
            raise LegoError("the SymPy expression is nested too deeply to be read") from None

    doprint = to_index

    def _of(self, x: Any) -> Int:
        found = self._known.get(x)
        if found is None:
            charge(1)
            found = self._known[x] = self._print(x)
        return found

    def _error(self, x: Any, what: str, hint: str | None = None) -> LegoError:
        inside = "" if x is self._whole or x == self._whole else f" in '{self._whole}'"
        return LegoError(f"'{x}'{inside} {what}", hint=hint)

    def emptyPrinter(self, x: Any) -> Int:
        raise self._error(
            x,
            "is not an integer index expression",
            "use integers, integer symbols, + - * **, floor, ceiling, Mod, Min, Max, Abs, "
            "Piecewise, comparisons, FloorDiv, Xor, ISqrt; a class of your own may have "
            "_lego_index(printer)",
        )

    # Numbers and symbols.
    def _print_int(self, x: int) -> Int:
        return int(x)

    def _print_Integer(self, x: Any) -> Int:
        return int(x)

    def _print_Rational(self, x: Any) -> Int:
        raise self._inexact(x)

    def _print_BooleanTrue(self, x: Any) -> Int:
        return 1

    def _print_BooleanFalse(self, x: Any) -> Int:
        return 0

    def _print_Symbol(self, x: Any) -> Int:
        known: Int | None = self.symbols.get(x)
        if known is not None:
            return known
        if x.is_integer is False:
            raise self._error(x, "is a symbol that is no integer", "declare it integer=True")
        if self._made.setdefault(x.name, x) != x:
            raise self._error(
                x, "is the name of two different symbols", "name one of them otherwise"
            )
        return symbol(x)

    # Sums, products, quotients.
    def _print_Add(self, x: Any) -> Int:
        try:
            return reduce(operator.add, map(self._of, x.args))
        except LegoError:
            numerator, denominator = sympy.fraction(sympy.together(x))
            if denominator == 1:
                raise
            return self._quotient(x, numerator, denominator)

    def _print_Mul(self, x: Any) -> Int:
        numerator, denominator = sympy.fraction(x)
        if denominator != 1:
            return self._quotient(x, numerator, denominator)
        return reduce(operator.mul, map(self._of, x.args))

    def _print_Pow(self, x: Any) -> Int:
        if not x.exp.is_Integer:
            raise self._error(
                x,
                "is no integer power",
                "exponents are numbers; a square root stands inside of floor: floor(sqrt(x))",
            )
        exponent = int(x.exp)
        if exponent < 0:
            return self._quotient(x, sympy.Integer(1), x.base**-exponent)
        base = self._of(x.base)
        bits = base.bit_length() * exponent if isinstance(base, int) else 0
        if bits > _MOST_BITS or (isinstance(base, Expr) and exponent > _MOST_EXPONENT):
            raise self._error(x, "is too large for an index")
        if isinstance(base, int):
            return int(base**exponent)
        power: Int = 1
        for _ in range(exponent):
            power = power * base
        return power

    def _quotient(self, x: Any, numerator: Any, denominator: Any) -> Int:
        """Return an exact quotient.

        Raises:
            LegoError: it is not proven to be exact.
        """
        a, b = self._of(numerator), self._of(denominator)
        quotient = self._floordiv(a, b)
        rest = plain(a - quotient * b)
        is_exact = (isinstance(rest, int) and rest == 0) or polynomial.divides(plain(b), plain(a))
        if not is_exact and not divides_every_value(plain(b), plain(a)):
            raise self._inexact(x)
        return quotient

    def _floordiv(self, a: Int, b: Int) -> Int:
        if isinstance(b, int) and b == 0:
            raise self._error(self._whole, "divides by zero")
        return a // b

    def _inexact(self, x: Any) -> LegoError:
        return self._error(
            x,
            "is not known to be an integer",
            f"write floor({x}) to round down; in a layout's size a symbol over something, M/BM, "
            "says that M is a multiple of BM",
        )

    # Rounding.
    def _print_floor(self, x: Any) -> Int:
        return self._rounded(x.args[0], up=False)

    def _print_ceiling(self, x: Any) -> Int:
        return self._rounded(x.args[0], up=True)

    def _rounded(self, x: Any, up: bool) -> Int:
        """Return `x` rounded; that keeps the order, so it may go inside of Min and Max."""
        if isinstance(x, sympy.Min | sympy.Max):
            pick = _minimum if isinstance(x, sympy.Min) else _maximum
            return reduce(pick, (self._rounded(a, up) for a in x.args))
        if isinstance(x, sympy.Piecewise):
            return self._piecewise(x, lambda a: self._rounded(a, up))
        if _is_root(x):
            square = self._rounded(x**2, up)
            if not up:
                return _isqrt(square)
            before = _maximum(square - 1, 0)
            return _isqrt(before) + _is_less(0, square)
        numerator, denominator = map(self._of, sympy.fraction(sympy.together(x)))
        if not up:
            return self._floordiv(numerator, denominator)
        if is_positive(denominator):
            return self._floordiv(numerator + (denominator - 1), denominator)
        return -self._floordiv(-numerator, denominator)

    def _print_Mod(self, x: Any) -> Int:
        a, b = map(self._of, x.args)
        if isinstance(b, int) and b == 0:
            raise self._error(x, "divides by zero")
        return a % b

    def _print_FloorDiv(self, x: Any) -> Int:
        a, b = map(self._of, x.args)
        return self._floordiv(a, b)

    # Choices.
    def _print_Min(self, x: Any) -> Int:
        return reduce(_minimum, map(self._of, x.args))

    def _print_Max(self, x: Any) -> Int:
        return reduce(_maximum, map(self._of, x.args))

    def _print_Abs(self, x: Any) -> Int:
        a = self._of(x.args[0])
        return _maximum(a, -a)

    def _print_sign(self, x: Any) -> Int:
        a = self._of(x.args[0])
        return _is_less(0, a) - _is_less(a, 0)

    def _print_Piecewise(self, x: Any) -> Int:
        return self._piecewise(x, self._of)

    def _piecewise(self, x: Any, value: Callable[[Any], Int]) -> Int:
        *pairs, last = x.args
        if last.cond != True:  # noqa: E712  # SymPy's own truth
            raise self._error(
                x, "has no value where none of its conditions holds", "end it with (value, True)"
            )
        return reduce(
            lambda rest, pair: _where(self._truth(pair.cond), value(pair.expr), rest),
            reversed(pairs),
            value(last.expr),
        )

    def _print_ITE(self, x: Any) -> Int:
        condition, a, b = x.args
        return _where(self._truth(condition), self._truth(a), self._truth(b))

    # Truth values.
    def _truth(self, x: Any) -> Int:
        """Return 1 where `x` holds, else 0."""
        value = self._of(x)
        return _where(value, 1, 0) if getattr(x, "is_Symbol", False) else value

    def _print_And(self, x: Any) -> Int:
        return reduce(lambda a, b: _where(a, b, 0), map(self._truth, x.args))

    def _print_Or(self, x: Any) -> Int:
        return reduce(lambda a, b: _where(a, 1, b), map(self._truth, x.args))

    def _print_Not(self, x: Any) -> Int:
        return 1 - self._truth(x.args[0])

    def _print_StrictLessThan(self, x: Any) -> Int:
        return self._less(x.lhs, x.rhs)

    def _print_StrictGreaterThan(self, x: Any) -> Int:
        return self._less(x.rhs, x.lhs)

    def _print_LessThan(self, x: Any) -> Int:
        return 1 - self._less(x.rhs, x.lhs)

    def _print_GreaterThan(self, x: Any) -> Int:
        return 1 - self._less(x.lhs, x.rhs)

    def _print_Equality(self, x: Any) -> Int:
        a, b = self._scaled(x, x.lhs, x.rhs)
        return _where(a - b, 0, 1)

    def _print_Unequality(self, x: Any) -> Int:
        a, b = self._scaled(x, x.lhs, x.rhs)
        return _where(a - b, 1, 0)

    def _less(self, a: Any, b: Any) -> Int:
        """Return whether `a < b`; SymPy compares a real number where its floor would do."""
        try:
            return _is_less(*self._scaled(sympy.Lt(a, b, evaluate=False), a, b))
        except LegoError:
            if b.is_integer:
                return _is_less(self._rounded(a, up=False), self._of(b))
            if a.is_integer:
                return _is_less(self._of(a), self._rounded(b, up=True))
            raise

    def _scaled(self, x: Any, a: Any, b: Any) -> tuple[Int, Int]:
        """Return both sides of a comparison, times what makes them integers."""
        _, p = sympy.fraction(sympy.together(a))
        _, q = sympy.fraction(sympy.together(b))
        scale = sympy.lcm(p, q)
        if scale == 1:
            return self._of(a), self._of(b)
        if not is_positive(self._of(scale)):
            raise self._error(x, f"is a comparison over {scale}, which is not known to be positive")
        return self._of(sympy.cancel(a * scale)), self._of(sympy.cancel(b * scale))

    # Ours, and SymPy's of the same name.
    def _print_Xor(self, x: Any) -> Int:
        values = self._truth if x.is_Boolean else self._of
        return reduce(operator.xor, map(values, x.args))

    def _print_ISqrt(self, x: Any) -> Int:
        return _isqrt(self._of(x.args[0]))

    def _print_Less(self, x: Any) -> Int:
        a, b = map(self._of, x.args)
        return _is_less(a, b)

    def _print_Where(self, x: Any) -> Int:
        condition, a, b = map(self._of, x.args)
        return _where(condition, a, b)


def _is_root(x: Any) -> bool:
    """Return whether `x` is a square root times a positive number."""
    number, rest = x.as_coeff_Mul()
    return bool(
        number.is_Rational and number > 0 and rest.is_Pow and rest.exp == sympy.Rational(1, 2)
    )


def _is_less(a: Int, b: Int) -> Int:
    """Return 1 if `a < b`, else 0; of two numbers Python would return a truth value."""
    less = a < b
    return int(less) if isinstance(less, bool) else less
