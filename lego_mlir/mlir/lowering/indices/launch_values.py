"""What the launch knows: values that are computed from arguments of the host function alone.

Such a value is written as the launch evaluates it: numbers, arguments and operators, each operator
behind its operands (`artifact.Fact`).

    %m: index                        a0
    arith.muli %m, %c2               a0 2 *
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lego_mlir.index import Int, Sym
from lego_mlir.index.nodes import FloorDiv, Max, Min, Mod, Mul, Poly, Spelled
from lego_mlir.mlir.bindings import ir

_CASTS = ("arith.index_cast", "arith.index_castui")
_OPERATORS = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.floordivsi": "//",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A value that the launch can compute.

    Attributes:
        tokens: numbers, arguments and operators, in the order in which they are evaluated.
    """

    tokens: tuple[str, ...]

    def with_operator(self, operator: str, other: Known) -> Known:
        """Return what the operator makes of this and another value."""
        return Known((*self.tokens, *other.tokens, operator))

    def __str__(self) -> str:
        return " ".join(self.tokens)


def number(n: int) -> Known:
    """Return a number as a value that the launch knows."""
    return Known((str(n),))


def known_value(value: Any) -> Known | None:
    """Return what the launch knows a value to be; `None` where only the kernel knows it."""
    if isinstance(value, ir.BlockArgument):
        argument = ir.BlockArgument(value)
        if argument.owner.owner.operation.name != "func.func" or isinstance(
            value.type, ir.MemRefType
        ):
            return None
        return Known((f"a{argument.arg_number}",))
    op = value.owner
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
        return number(ir.IntegerAttr(op.attributes["value"]).value)
    if op.name in _CASTS:
        return known_value(op.operands[0])
    if op.name not in _OPERATORS:
        return None
    a, b = (known_value(operand) for operand in op.operands)
    return a.with_operator(_OPERATORS[op.name], b) if a and b else None


def known_expression(x: Int, known: Callable[[Sym], Known | None]) -> Known | None:
    """Return what the launch knows an index expression to be.

    Args:
        x: the expression.
        known: what the launch knows a symbol to be.
    """

    def all_of(operator: str, *parts: Int) -> Known | None:
        found = [known_expression(part, known) for part in parts]
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            return None
        return reduce(lambda a, b: a.with_operator(operator, b), values)

    match x:
        case int():
            return number(x)
        case Sym():
            return known(x)
        case Spelled(value, _):
            return known_expression(value, known)
        case FloorDiv(a, b):
            return all_of("//", a, b)
        case Mod(a, b):
            return all_of("%", a, b)
        case Mul(a, b):
            return all_of("*", a, b)
        case Min(a, b):
            return all_of("min", a, b)
        case Max(a, b):
            return all_of("max", a, b)
        case Poly(constant, terms):
            summands = [number(constant)] if constant else []
            for mono, coefficient in terms:
                factors = [atom for atom, power in mono for _ in range(power)]
                product = all_of("*", *([coefficient] if coefficient != 1 else []), *factors)
                if product is None:
                    return None
                summands.append(product)
            return reduce(lambda a, b: a.with_operator("+", b), summands)
    return None
