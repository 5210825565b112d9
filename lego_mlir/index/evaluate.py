"""Evaluation of index expressions: on integers, and on NumPy arrays all points at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import functions
from lego_mlir.index.nodes import (
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


def evaluate(x: Int, values: Mapping[str, Any]) -> Any:
    """The value of `x` where each symbol has the value of its name: an int or an int64 array.

    Raises:
        LegoError: a symbol has no value.
    """
    done: dict[Expr, Any] = {}

    def visit(node: Int) -> Any:
        if isinstance(node, int):
            return node
        if node not in done:
            done[node] = compute(node)
        return done[node]

    def compute(node: Expr) -> Any:
        match node:
            case Sym(name):
                if name not in values:
                    raise LegoError(f"symbol '{name}' of '{x!r}' has no value")
                return values[name]
            case Poly(constant, terms):
                total: Any = constant
                for mono, coefficient in terms:
                    term: Any = coefficient
                    for atom, power in mono:
                        term = term * visit(atom) ** power
                    total = total + term
                return total
            case FloorDiv(num, den):
                return visit(num) // visit(den)
            case Mod(num, den):
                return visit(num) % visit(den)
            case Xor(a, b):
                return visit(a) ^ visit(b)
            case Min(a, b):
                return functions.minimum(visit(a), visit(b))
            case Max(a, b):
                return functions.maximum(visit(a), visit(b))
            case ISqrt(a):
                return functions.isqrt(visit(a))
            case Less(a, b):
                return (visit(a) < visit(b)) * 1
            case Where(condition, a, b):
                chosen = visit(condition)
                if not functions.is_array(chosen):  # the other may have no value: a root, a // 0
                    return visit(a if chosen else b)
                return functions.where(chosen, visit(a), visit(b))
            case Mul(a, b):
                return visit(a) * visit(b)
            case Spelled(_, form):
                return visit(form)
        raise AssertionError(f"no value for {type(node).__name__}")

    return visit(x)
