"""Index expressions as SymPy expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from lego_mlir.index import construct, nodes, structure
from lego_mlir.index.fold import Algebra, fold
from lego_mlir.index.nodes import Expr, Int, Poly, Sym
from lego_mlir.index.sympy_bridge.functions import FloorDiv, ISqrt, Less, Mod, Where, Xor

_FUNCTIONS: dict[type[Expr], Any] = {
    nodes.FloorDiv: FloorDiv,
    nodes.Mod: Mod,
    nodes.Xor: Xor,
    nodes.Min: sympy.Min,
    nodes.Max: sympy.Max,
    nodes.ISqrt: ISqrt,
    nodes.Less: Less,
    nodes.Where: Where,
}


def to_sympy(x: Int, symbols: Mapping[Sym, sympy.Symbol] | None = None) -> sympy.Expr:
    """Return `x` as a SymPy expression.

    Args:
        x: the index expression.
        symbols: the SymPy symbols to use; others are made, integers with the sign that the
            range shows.
    """
    return fold(x, _Sympy(symbols or {}))


class _Sympy(Algebra[sympy.Expr]):
    """The SymPy expression of each node."""

    def __init__(self, symbols: Mapping[Sym, sympy.Symbol]) -> None:
        super().__init__()
        self.symbols = symbols

    def constant(self, x: int) -> sympy.Expr:
        return sympy.Integer(x)

    def symbol(self, x: Sym) -> sympy.Expr:
        assumptions: dict[str, bool] = {"integer": True}
        if x.lo is not None and x.lo >= 0:
            assumptions["positive" if x.lo > 0 else "nonnegative"] = True
        return self.symbols.get(x) or sympy.Symbol(x.name, **assumptions)

    def poly(self, x: Poly) -> sympy.Expr:
        terms = (
            sympy.Mul(sympy.Integer(c), *(self(a) ** p for a, p in mono)) for mono, c in x.terms
        )
        return sympy.Add(sympy.Integer(x.constant), *terms)

    def mul(self, x: nodes.Mul) -> sympy.Expr:
        return sympy.Mul(self(x.a), self(x.b))

    def bits(self, x: nodes.Bits) -> sympy.Expr:
        return self(construct.bits(x.x, x.mask))

    def other(self, x: Expr) -> sympy.Expr:
        return _FUNCTIONS[type(x)](*(self(operand) for operand in structure.children(x)))
