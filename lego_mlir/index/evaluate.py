"""Evaluation of index expressions: on integers, and on NumPy arrays all points at once.

`Operators` is what an evaluation on other values begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import functions
from lego_mlir.index.fold import Algebra, fold
from lego_mlir.index.nodes import (
    Bits,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Mul,
    Poly,
    Sym,
    Where,
    Xor,
)


def evaluate(x: Int, values: Mapping[str, Any]) -> Any:
    """Return the value of `x` where each symbol has the value of its name.

    Args:
        x: the expression.
        values: an int or an int64 array for each name.

    Raises:
        LegoError: a symbol has no value.
    """
    return fold(x, _Value(x, values))


class Operators(Algebra[Any]):
    """Evaluates by Python's operators and `functions`, on whatever values these take.

    Symbols and polynomials are left to the classes that derive from it.
    """

    def constant(self, x: int) -> Any:
        return x

    def mul(self, x: Mul) -> Any:
        return self(x.a) * self(x.b)

    def floordiv(self, x: FloorDiv) -> Any:
        return self(x.num) // self(x.den)

    def mod(self, x: Mod) -> Any:
        return self(x.num) % self(x.den)

    def bits(self, x: Bits) -> Any:
        return self(x.x) & x.mask

    def xor(self, x: Xor) -> Any:
        return self(x.a) ^ self(x.b)

    def minimum(self, x: Min) -> Any:
        return functions.minimum(self(x.a), self(x.b))

    def maximum(self, x: Max) -> Any:
        return functions.maximum(self(x.a), self(x.b))


class _Value(Operators):
    """The value of each node."""

    def __init__(self, whole: Int, values: Mapping[str, Any]) -> None:
        super().__init__()
        self.whole = whole
        self.values = values

    def symbol(self, x: Sym) -> Any:
        if x.name not in self.values:
            raise LegoError(f"symbol '{x.name}' of '{self.whole!r}' has no value")
        return self.values[x.name]

    def poly(self, x: Poly) -> Any:
        total: Any = x.constant
        for mono, coefficient in x.terms:
            term: Any = coefficient
            for atom, power in mono:
                term = term * self(atom) ** power
            total = total + term
        return total

    def isqrt(self, x: ISqrt) -> Any:
        return functions.isqrt(self(x.x))

    def less(self, x: Less) -> Any:
        return (self(x.a) < self(x.b)) * 1

    def where(self, x: Where) -> Any:
        chosen = self(x.condition)
        if not functions.is_array(chosen):  # the other may have no value: a root, a // 0
            return self(x.a if chosen else x.b)
        return functions.where(chosen, self(x.a), self(x.b))
