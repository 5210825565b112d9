"""What an index expression costs: how many operations of which kind, common parts counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from lego_mlir.index.factor import Product, Sum, Tree, factor, without_constant
from lego_mlir.index.nodes import Expr, FloorDiv, Int, ISqrt, Mod, Mul, Poly, Spelled, children


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
"""Instructions for what is not one: a multiply-high with its corrections, a reciprocal with its
Newton step and corrections, a floating-point root with its rounding."""


def operations(expressions: Int | Iterable[Int]) -> Counter[Kind]:
    """The operations of one or several expressions, as the printers will write them."""
    counts: Counter[Kind] = Counter()
    seen: set[Tree] = set()

    def visit(x: Tree) -> None:
        if isinstance(x, int) or x in seen:
            return
        seen.add(x)
        match x:
            case Sum(terms):
                counts[Kind.ADD] += len(terms) - (terms[0][0] == 1)
                for _, t in terms:
                    visit(t)
            case Product(factors):
                for f in factors[1:]:
                    counts[Kind.SHIFT if _is_power_of_two(f) else Kind.MULTIPLY] += 1
                for f in factors:
                    visit(f)
            case Poly():
                base = without_constant(x)
                counts[Kind.ADD] += base is not None
                visit(factor(x) if base is None else base)
            case Spelled(_, form):
                visit(form)
            case Expr():
                if kind := _kind(x):
                    counts[kind] += 1
                for child in children(x):
                    visit(child)

    for e in (expressions,) if isinstance(expressions, int | Expr) else expressions:
        visit(e)
    return counts


def count(expressions: Int | Iterable[Int]) -> int:
    """How many operations in all."""
    return operations(expressions).total()


def weight(expressions: Int | Iterable[Int]) -> int:
    """About how many instructions a GPU needs for them."""
    return sum(n * _WEIGHTS.get(kind, 1) for kind, n in operations(expressions).items())


def _kind(x: Expr) -> Kind | None:
    if not children(x):
        return None
    if isinstance(x, Mul):
        return Kind.MULTIPLY
    if isinstance(x, ISqrt):
        return Kind.ROOT
    if not isinstance(x, FloorDiv | Mod):
        return Kind.OTHER
    if _is_power_of_two(x.den):
        return Kind.SHIFT
    return Kind.DIVIDE_BY_CONSTANT if isinstance(x.den, int) else Kind.DIVIDE


def _is_power_of_two(x: Tree) -> bool:
    return isinstance(x, int) and x > 0 and x & (x - 1) == 0
