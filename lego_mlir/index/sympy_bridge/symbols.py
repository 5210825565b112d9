"""SymPy symbols as symbols of index expressions, and the facts that SymPy sizes state."""

from __future__ import annotations

import sympy

from lego_mlir.index.nodes import Int, Sym


def symbol(x: sympy.Symbol, lo: int | None = None, hi: Int | None = None) -> Sym:
    """Return the index symbol of a SymPy symbol; `lo` by default follows from its assumptions."""
    if lo is None:
        lo = 1 if x.is_positive else 0 if x.is_nonnegative else None
    return Sym(x.name, lo, hi)


def stated_divisors(size: sympy.Expr) -> dict[sympy.Symbol, list[sympy.Expr]]:
    """Return what a size states to divide its symbols: `M/BM`, that BM divides M.

    A size is an integer, so a symbol over something is an exact quotient. Inside of a `floor` or a
    `ceiling` it need not be one.
    """
    stated: dict[sympy.Symbol, list[sympy.Expr]] = {}
    nodes = sympy.preorder_traversal(size)
    for node in nodes:
        if isinstance(node, sympy.floor | sympy.ceiling):
            nodes.skip()
        elif node.is_Mul:
            numerator, denominator = sympy.fraction(node)
            if numerator.is_Symbol and denominator != 1:
                stated.setdefault(numerator, []).append(denominator)
    return stated
