"""Index expressions as text, in Python's notation: `32*(b // 32) + t % 32`."""

from __future__ import annotations

from lego_mlir.index.fold import Algebra, fold
from lego_mlir.index.nodes import (
    Bits,
    Expr,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Mono,
    Mul,
    Poly,
    Sym,
    Where,
    Xor,
)

_SUM, _PRODUCT, _ATOM = 1, 2, 3
"""How tightly the outermost operator of a text binds."""


def to_text(x: Int) -> str:
    """Return `x` as Python would write it."""
    return fold(x, _Text())[0]


class _Text(Algebra[tuple[str, int]]):
    """The text of each node, and how tightly its outermost operator binds."""

    def within(self, x: Int, level: int) -> str:
        """Return the text of an operand, in parentheses where it binds less tightly."""
        text, own = self(x)
        return f"({text})" if own < level else text

    def constant(self, x: int) -> tuple[str, int]:
        return str(x), _ATOM if x >= 0 else _SUM

    def symbol(self, x: Sym) -> tuple[str, int]:
        return x.name, _ATOM

    def poly(self, x: Poly) -> tuple[str, int]:
        pieces = [self._term(c, mono) for mono, c in x.terms]
        if x.constant:
            pieces.append(str(x.constant))
        level = _PRODUCT if len(pieces) == 1 and not pieces[0].startswith("-") else _SUM
        return " + ".join(pieces).replace("+ -", "- "), level

    def _term(self, coefficient: int, mono: Mono) -> str:
        factors = [self.within(atom, _ATOM) for atom, power in mono for _ in range(power)]
        if coefficient == 1:
            return "*".join(factors) if len(factors) > 1 else self.within(mono[0][0], _PRODUCT)
        if coefficient == -1:
            return "-" + "*".join(factors)
        return "*".join([str(coefficient), *factors])

    def floordiv(self, x: FloorDiv) -> tuple[str, int]:
        return self._infix(x.num, "//", x.den), _PRODUCT

    def mod(self, x: Mod) -> tuple[str, int]:
        return self._infix(x.num, "%", x.den), _PRODUCT

    def mul(self, x: Mul) -> tuple[str, int]:
        return self._infix(x.a, "*", x.b), _PRODUCT

    def bits(self, x: Bits) -> tuple[str, int]:
        return f"({self._infix(x.x, ' & ', x.mask)})", _ATOM

    def xor(self, x: Xor) -> tuple[str, int]:
        return f"({self._infix(x.a, ' ^ ', x.b)})", _ATOM

    def _infix(self, a: Int, operator: str, b: Int) -> str:
        return f"{self.within(a, _ATOM)}{operator}{self.within(b, _ATOM)}"

    def less(self, x: Less) -> tuple[str, int]:
        return f"({self(x.a)[0]} < {self(x.b)[0]})", _ATOM

    def minimum(self, x: Min) -> tuple[str, int]:
        return self._call("min", x)

    def maximum(self, x: Max) -> tuple[str, int]:
        return self._call("max", x)

    def isqrt(self, x: ISqrt) -> tuple[str, int]:
        return self._call("isqrt", x)

    def where(self, x: Where) -> tuple[str, int]:
        return self._call("where", x)

    def _call(self, function: str, x: Expr) -> tuple[str, int]:
        operands = (self(getattr(x, field))[0] for field in x.__match_args__)
        return f"{function}({', '.join(operands)})", _ATOM
