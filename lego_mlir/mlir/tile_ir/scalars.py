"""Scalars of a kernel as index expressions, in which all that is not arithmetic is a symbol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.index import Int, Sym, construct
from lego_mlir.mlir.bindings import ir

_ARITHMETIC: Mapping[str, Callable[[Int, Int], Int]] = {
    "arith.addi": construct.add,
    "arith.subi": construct.sub,
    "arith.muli": construct.mul,
}
_DIVISIONS: Mapping[str, Callable[[Int, int], Int]] = {
    "arith.divui": construct.floordiv,
    "arith.divsi": construct.floordiv,
    "arith.floordivsi": construct.floordiv,
    "arith.ceildivui": ceildiv,
    "arith.ceildivsi": ceildiv,
    "arith.remui": construct.mod,
}
"""By a number above 0; what is divided is not negative where that matters: it counts iterations."""
_SAME = ("arith.index_cast", "arith.index_castui")
_AND = "arith.andi"
"""Of a value with itself: it carries a bound."""


class Scalars:
    """Reads scalars; every value has one expression.

    Attributes:
        values: the value that each symbol stands for.
    """

    def __init__(self) -> None:
        self.values: dict[Sym, Any] = {}
        self._known: dict[Any, Int] = {}

    def __call__(self, value: Any) -> Int:
        """Return the expression of an integer or index; of another value a symbol."""
        if value not in self._known:
            self._known[value] = self._read(value)
        return self._known[value]

    def _read(self, value: Any) -> Int:
        if not isinstance(value, ir.BlockArgument):
            op = value.owner
            if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
                return int(ir.IntegerAttr(op.attributes["value"]).value)
            if op.name in _SAME or (op.name == _AND and op.operands[0] == op.operands[1]):
                return self(op.operands[0])
            if op.name in _DIVISIONS:
                divisor = self(op.operands[1])
                if isinstance(divisor, int) and divisor > 0:
                    return _DIVISIONS[op.name](self(op.operands[0]), divisor)
            elif op.name in _ARITHMETIC:
                return _ARITHMETIC[op.name](*map(self, op.operands))
        symbol = Sym(f"v{len(self.values)}")
        self.values[symbol] = value
        return symbol
