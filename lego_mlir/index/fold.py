"""The fold over index expressions: what interprets them has one method for each kind of node.

Text, values, ranges, Z3 terms, costs and MLIR operations of an expression are each an `Algebra`.
`fold` walks the expression, calls the method of each node's kind, and interprets shared nodes once.
A method is given its node and folds the operands that it needs, in the order that it needs them:

    class Depth(Algebra[int]):
        def constant(self, x: int) -> int:
            return 0

        def other(self, x: Expr) -> int:  # all kinds without a method of their own
            return 1 + max((self(operand) for operand in children(x)), default=0)

    >>> fold(i // 32 % 8, Depth())
    3
"""

from __future__ import annotations

from typing import Generic, TypeVar

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
    Mul,
    Poly,
    Spelled,
    Sym,
    Where,
    Xor,
)

R = TypeVar("R")


class Algebra(Generic[R]):
    """An interpretation of index expressions, with results of type R.

    Attributes:
        folded: the results of the nodes that were folded already.
    """

    def __init__(self) -> None:
        self.folded: dict[Expr, R] = {}

    def __call__(self, x: Int) -> R:
        """Fold `x`, sharing results with what this algebra has folded before."""
        if isinstance(x, int):
            return self.constant(x)
        folded = self.folded
        if x not in folded:
            folded[x] = self.interpret(x)
        return folded[x]

    def interpret(self, x: Expr) -> R:
        """Call the method of the kind of `x`; nothing is looked up or kept."""
        return getattr(self, _METHODS[type(x)])(x)  # type: ignore[no-any-return]

    def constant(self, x: int) -> R:
        """Interpret an integer."""
        raise NotImplementedError

    def other(self, x: Expr) -> R:
        """Interpret a node whose kind has no method of its own."""
        raise AssertionError(f"{type(self).__name__} does not interpret {type(x).__name__}")

    def symbol(self, x: Sym) -> R:
        """Interpret a symbol."""
        return self.other(x)

    def poly(self, x: Poly) -> R:
        """Interpret a polynomial."""
        return self.other(x)

    def mul(self, x: Mul) -> R:
        """Interpret a product of sums."""
        return self.other(x)

    def floordiv(self, x: FloorDiv) -> R:
        """Interpret a floor division."""
        return self.other(x)

    def mod(self, x: Mod) -> R:
        """Interpret a remainder."""
        return self.other(x)

    def bits(self, x: Bits) -> R:
        """Interpret the bits of a mask."""
        return self.other(x)

    def xor(self, x: Xor) -> R:
        """Interpret an exclusive or."""
        return self.other(x)

    def minimum(self, x: Min) -> R:
        """Interpret a minimum."""
        return self.other(x)

    def maximum(self, x: Max) -> R:
        """Interpret a maximum."""
        return self.other(x)

    def isqrt(self, x: ISqrt) -> R:
        """Interpret an integer square root."""
        return self.other(x)

    def less(self, x: Less) -> R:
        """Interpret a comparison."""
        return self.other(x)

    def where(self, x: Where) -> R:
        """Interpret a choice."""
        return self.other(x)

    def spelled(self, x: Spelled) -> R:
        """Interpret an expression with a cheaper form: by that form, unless overridden."""
        return self(x.form)


def fold(x: Int, algebra: Algebra[R]) -> R:
    """Return what `algebra` makes of `x`; each node is interpreted once."""
    return algebra(x)


_METHODS: dict[type[Expr], str] = {
    Sym: "symbol",
    Poly: "poly",
    Mul: "mul",
    FloorDiv: "floordiv",
    Mod: "mod",
    Bits: "bits",
    Xor: "xor",
    Min: "minimum",
    Max: "maximum",
    ISqrt: "isqrt",
    Less: "less",
    Where: "where",
    Spelled: "spelled",
}
