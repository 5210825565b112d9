"""The cost of index expressions: operations by kind, common subexpressions counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from lego_mlir.index.extraction.factor import Product, Sum, Tree, factor, without_constant
from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import Bits, Expr, FloorDiv, Int, ISqrt, Mod, Mul, Poly, Sym
from lego_mlir.index.structure import children


class Kind(StrEnum):
    """Operations by what a GPU pays for them."""

    ADD = "add"
    MULTIPLY = "multiply"
    SHIFT = "shift or mask"
    DIVIDE_BY_CONSTANT = "division by a constant"
    DIVIDE = "division"
    ROOT = "square root"
    OTHER = "other"


_WEIGHTS = {Kind.DIVIDE_BY_CONSTANT: 4, Kind.DIVIDE: 24, Kind.ROOT: 12}
"""Instructions of kinds that take several: a multiply-high with its corrections, a reciprocal with
its Newton step and corrections, a floating-point root with its rounding."""


def operations(expressions: Int | Iterable[Int]) -> Counter[Kind]:
    """Count the operations of one or several expressions, as the printers will write them.

    Args:
        expressions: an expression, or several, whose common subexpressions count once.
    """
    counting = _Operations()
    for e in (expressions,) if isinstance(expressions, int | Expr) else expressions:
        counting(e)
    return counting.counts


class _Operations(Algebra[None]):
    """Counts the operations of each node."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[Kind] = Counter()
        self.trees: set[Sum | Product] = set()

    def constant(self, x: int) -> None:
        pass

    def symbol(self, x: Sym) -> None:
        pass

    def poly(self, x: Poly) -> None:
        base = without_constant(x)
        self.counts[Kind.ADD] += base is not None
        self.tree(factor(x) if base is None else base)

    def mul(self, x: Mul) -> None:
        self.operation(Kind.MULTIPLY, x)

    def floordiv(self, x: FloorDiv) -> None:
        self.operation(_kind_of_division(x.den), x)

    def mod(self, x: Mod) -> None:
        self.operation(_kind_of_division(x.den), x)

    def bits(self, x: Bits) -> None:
        self.operation(Kind.SHIFT, x)

    def isqrt(self, x: ISqrt) -> None:
        self.operation(Kind.ROOT, x)

    def other(self, x: Expr) -> None:
        self.operation(Kind.OTHER, x)

    def operation(self, kind: Kind, x: Expr) -> None:
        """Count one operation and those of its operands."""
        self.counts[kind] += 1
        for child in children(x):
            self(child)

    def tree(self, x: Tree) -> None:
        """Count the operations of a factored sum."""
        if not isinstance(x, Sum | Product):
            self(x)
            return
        if x in self.trees:
            return
        self.trees.add(x)
        match x:
            case Sum(terms):
                self.counts[Kind.ADD] += len(terms) - (terms[0][0] == 1)
                for _, t in terms:
                    self.tree(t)
            case Product(factors):
                for f in factors[1:]:
                    self.counts[Kind.SHIFT if _is_power_of_two(f) else Kind.MULTIPLY] += 1
                for f in factors:
                    self.tree(f)


def count(expressions: Int | Iterable[Int]) -> int:
    """Return how many operations the expressions have in all."""
    return operations(expressions).total()


def weight(expressions: Int | Iterable[Int]) -> int:
    """Return about how many instructions a GPU needs for the expressions."""
    return sum(n * _WEIGHTS.get(kind, 1) for kind, n in operations(expressions).items())


def _kind_of_division(den: Int) -> Kind:
    if _is_power_of_two(den):
        return Kind.SHIFT
    return Kind.DIVIDE_BY_CONSTANT if isinstance(den, int) else Kind.DIVIDE


def _is_power_of_two(x: Tree) -> bool:
    return isinstance(x, int) and x > 0 and x & (x - 1) == 0
