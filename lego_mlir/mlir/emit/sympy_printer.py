"""SymPy integer expressions as `arith` and `affine` operations: a printer of SymPy's own kind.

    x, y = sympy.symbols("x y", integer=True, nonnegative=True)
    with ir.InsertionPoint(block):
        printer = SympyPrinter({x: block.arguments[0], y: block.arguments[1]})
        value = printer.doprint(sympy.floor(x / 4) * y + sympy.Mod(x, 4))

builds

    %0 = arith.shrui %x, %c2
    %1 = arith.muli %0, %y
    %2 = arith.andi %x, %c3
    %3 = arith.addi %1, %2

The expression becomes an index expression first (`index.sympy_bridge`), so it is simplified, and
what is known of the symbols, by their assumptions or as a range, makes shifts, masks and unsigned
divisions of its operations. Results that were built before are used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym
from lego_mlir.index.extraction import forms
from lego_mlir.index.sympy_bridge import IndexPrinter, symbol
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit.arith import like
from lego_mlir.mlir.emit.vectors import VectorPrinter


class SympyPrinter(IndexPrinter):
    """Prints SymPy expressions as operations at the current insertion point.

    It knows sums, products, powers, exact quotients, `floor`, `ceiling`, `Mod`, `Min`, `Max`,
    `Abs`, `sign`, `Piecewise`, comparisons, `And`, `Or`, `Not`, `Xor`, `ITE`, square roots inside
    of `floor`, and `FloorDiv`, `Mod`, `Xor`, `ISqrt`, `Less`, `Where` of `index.sympy_bridge`. A
    subclass may add a method `_print_NAME`, and a SymPy class a method `_lego_index(printer)`,
    which return an index expression; `_print` gives them that of an operand.

    Args:
        values: the SSA value of each symbol: an integer, an index, or a vector of either. Vectors
            have one shape; the expression is computed for each element.
        ranges: the least and the greatest value of symbols, None where there is none. Others have
            the sign of their assumptions. The operations rely on both.

    Raises:
        LegoError: a value is neither, or the vectors differ in shape.
    """

    def __init__(
        self,
        values: Mapping[sympy.Symbol, Any],
        ranges: Mapping[sympy.Symbol, tuple[int | None, int | None]] | None = None,
    ) -> None:
        known = {s: _with_range(s, (ranges or {}).get(s)) for s in values}
        names = [s.name for s in values]
        if len(set(names)) < len(names):
            raise LegoError("two of the symbols have the same name: name one of them otherwise")
        super().__init__(known)
        self._emitter = VectorPrinter({known[s]: _as_index(s, v) for s, v in values.items()})

    def doprint(self, expr: Any) -> Any:
        """Build `expr`; return its value, of type index or a vector of index.

        Args:
            expr: an integer or boolean expression, or a list or tuple of them, which gives a list
                of values. A boolean is 1 or 0.

        Raises:
            LegoError: a symbol has no value, a class is not known, or a quotient is not known to
                be exact.
        """
        if isinstance(expr, list | tuple | sympy.Tuple):
            return [self.doprint(e) for e in expr]
        expr = sympy.sympify(expr)
        missing = sorted(s.name for s in expr.free_symbols if s not in self.symbols)
        if missing:
            raise LegoError(
                f"the symbols {', '.join(missing)} of '{expr}' have no value",
                hint="bind each symbol to an SSA value: SympyPrinter({symbol: value})",
            )
        return self._emitter.print(self._derived(expr))

    def _derived(self, expr: Any) -> Int:
        """Return the index expression in the form that costs least."""
        known = self.symbols

        def make(*values: Int) -> Int:
            self.symbols = dict(zip(known, values, strict=True))
            return self.to_index(expr)

        try:
            return forms.derive(make, *known.values())
        finally:
            self.symbols = known


def _with_range(s: sympy.Symbol, bounds: tuple[int | None, int | None] | None) -> Sym:
    plain = symbol(s)
    if bounds is None:
        return plain
    lo, hi = bounds
    return Sym(s.name, plain.lo if lo is None else lo, hi)


def _as_index(s: sympy.Symbol, value: Any) -> Any:
    """Return an SSA value as an index or a vector of them."""
    kind: Any = getattr(value, "type", None)
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.IndexType):
        return value
    if not isinstance(element, ir.IntegerType) or element.width == 1:
        raise LegoError(
            f"symbol '{s}' stands for {'a value of type ' + str(kind) if kind else repr(value)}",
            hint="bind it to an integer, an index, or a vector of either",
        )
    return arith.IndexCastOp(like(kind, ir.IndexType.get()), value).result
