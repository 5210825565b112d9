"""SymPy expressions in and out.

Index expressions meet SymPy at the border: `to_sympy` gives an expression of SymPy's own nodes
and of `FloorDiv`, `Mod`, `Xor` … below, which evaluate on integers, print as Python and lambdify
for NumPy; `from_sympy` takes such an expression back into normal form. Between the two nothing
runs through SymPy: its general simplifiers are what peers lost their compile time to, and its
import alone takes longer than a whole compilation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import sympy
from sympy.printing.precedence import PRECEDENCE

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import construct, nodes, structure
from lego_mlir.index.fold import Algebra, fold
from lego_mlir.index.functions import isqrt
from lego_mlir.index.nodes import Expr, Int, Poly, Sym


class _IntegerFunction(sympy.Function):  # type: ignore[misc]
    """An integer function that evaluates on integers only and otherwise stays as it is."""

    is_integer = True
    form: ClassVar[str]

    @classmethod
    def eval(cls, *args: Any) -> Any:
        if all(a.is_Integer for a in args) and not (cls in _DIVISIONS and args[1] == 0):
            return sympy.Integer(_VALUES[cls](*(int(a) for a in args)))
        return None

    def _code(self, printer: Any) -> str:
        """Print the function: SymPy's hook for its Python, NumPy and plain-text printers."""
        operands = (
            printer.doprint(a)
            if isinstance(a, _IntegerFunction)
            else printer.parenthesize(a, PRECEDENCE["Atom"], strict=True)
            for a in self.args
        )
        return self.form.format(*operands)

    _sympystr = _pythoncode = _numpycode = _lambdacode = _code


class FloorDiv(_IntegerFunction):
    """`a // b`, rounded towards minus infinity."""

    nargs = 2
    form = "({} // {})"


class Mod(_IntegerFunction):
    """`a % b` with the sign of b."""

    nargs = 2
    form = "({} % {})"


class Xor(_IntegerFunction):
    """Bitwise exclusive or."""

    nargs = 2
    form = "({} ^ {})"


class ISqrt(_IntegerFunction):
    """The integer square root."""

    nargs = 1
    form = "isqrt({})"


class Less(_IntegerFunction):
    """1 if a < b, else 0."""

    nargs = 2
    form = "(({} < {})*1)"  # a number: NumPy would add booleans as `or`


class Where(_IntegerFunction):
    """The second argument where the first is not 0, else the third."""

    nargs = 3
    form = "where({}, {}, {})"


_DIVISIONS = (FloorDiv, Mod)
_VALUES: dict[type, Any] = {
    FloorDiv: lambda a, b: a // b,
    Mod: lambda a, b: a % b,
    Xor: lambda a, b: a ^ b,
    ISqrt: isqrt,
    Less: lambda a, b: int(a < b),
    Where: lambda c, a, b: a if c else b,
}
_TO_SYMPY: dict[type[Expr], Any] = {
    nodes.FloorDiv: FloorDiv,
    nodes.Mod: Mod,
    nodes.Xor: Xor,
    nodes.Min: sympy.Min,
    nodes.Max: sympy.Max,
    nodes.ISqrt: ISqrt,
    nodes.Less: Less,
    nodes.Where: Where,
}
_FROM_SYMPY: dict[type, Any] = {
    FloorDiv: construct.floordiv,
    Mod: construct.mod,
    Xor: construct.xor,
    ISqrt: construct.isqrt,
    Less: construct.less,
    Where: construct.where,
    sympy.Mod: construct.mod,
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

    def other(self, x: Expr) -> sympy.Expr:
        return _TO_SYMPY[type(x)](*(self(operand) for operand in structure.children(x)))


def from_sympy(x: Any, symbols: Mapping[sympy.Symbol, Int] | None = None) -> Int:
    """Return a SymPy expression as an index expression, simplified.

    Args:
        x: integers, symbols, sums, products, powers, `floor(a/b)`, `Mod`, `Min`, `Max` and the
            functions of this module.
        symbols: what the symbols stand for; others become symbols of the same name, with the
            sign of their SymPy assumptions.

    Raises:
        LegoError: the expression is no integer expression, or has another function in it.
    """
    known = symbols or {}

    def visit(node: Any) -> Int:
        if isinstance(node, int):
            return node
        if node.is_Integer:
            return int(node)
        if node.is_Symbol:
            return known[node] if node in known else symbol(node)
        if node.is_Add or node.is_Mul:
            combine = construct.add if node.is_Add else construct.mul
            first, *rest = (visit(a) for a in node.args)
            for operand in rest:
                first = combine(first, operand)
            return first
        if node.is_Pow and node.exp.is_Integer and node.exp > 0:
            base, power = visit(node.base), 1
            result: Int = base
            while power < int(node.exp):
                result, power = construct.mul(result, base), power + 1
            return result
        if isinstance(node, sympy.floor):
            numerator, denominator = sympy.fraction(sympy.together(node.args[0]))
            return construct.floordiv(visit(numerator), visit(denominator))
        if isinstance(node, sympy.Min | sympy.Max):
            pick = construct.minimum if isinstance(node, sympy.Min) else construct.maximum
            first, *rest = (visit(a) for a in node.args)
            for operand in rest:
                first = pick(first, operand)
            return first
        if type(node) in _FROM_SYMPY:
            return _FROM_SYMPY[type(node)](*(visit(a) for a in node.args))  # type: ignore[no-any-return]
        raise LegoError(
            f"'{node}' is not an integer index expression",
            hint="use integers, integer symbols, + - *, FloorDiv, Mod, Xor, Min, Max",
        )

    return visit(x)


def symbol(x: sympy.Symbol, lo: int | None = None, hi: Int | None = None) -> Sym:
    """Return the index symbol of a SymPy symbol; `lo` by default follows from its assumptions."""
    if lo is None:
        lo = 1 if x.is_positive else 0 if x.is_nonnegative else None
    return Sym(x.name, lo, hi)
