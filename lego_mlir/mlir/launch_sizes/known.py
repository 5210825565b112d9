"""What the launch knows: values that are computed from arguments of the host function alone.

Such a value is written as the launch evaluates it: numbers, arguments, their sizes and strides, and
operators, each operator behind its operands (`artifact.Fact`).

    %m: index                        a0
    arith.muli %m, %c2               a0 2 *
    memref.dim %x, %c0               a1.d0
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lego_mlir.index import Int, Sym
from lego_mlir.index.nodes import FloorDiv, Max, Min, Mod, Mul, Poly, Spelled
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.launch_sizes.hoist_sizes import DIM, METADATA
from lego_mlir.mlir.lowering.indices.index_reader import affine_value

_SCALAR = re.compile(r"a\d+")
_CASTS = ("arith.index_cast", "arith.index_castui")
_OPERATORS = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.floordivsi": "//",
    "arith.minsi": "min",
    "arith.maxsi": "max",
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

    def __add__(self, other: Known | int) -> Known:
        return self.with_operator("+", _known(other))

    def __mul__(self, other: Known | int) -> Known:
        return self.with_operator("*", _known(other))

    def __floordiv__(self, other: Known | int) -> Known:
        return self.with_operator("//", _known(other))

    def __mod__(self, other: Known | int) -> Known:
        return self.with_operator("%", _known(other))

    def __neg__(self) -> Known:
        return number(0).with_operator("-", self)

    @property
    def is_nonnegative(self) -> bool:
        """Whether it is seen not to be negative: nothing is taken from sizes and strides."""
        return not any(t == "-" or t[0] == "-" or _SCALAR.fullmatch(t) for t in self.tokens)

    @property
    def is_number(self) -> bool:
        """Whether no argument is in it."""
        return not any(token[0] == "a" for token in self.tokens)

    def __str__(self) -> str:
        return " ".join(self.tokens)


def size_of(argument: int, dim: int) -> Known:
    """Return the size of an argument's buffer along a dimension, as the launch knows it."""
    return Known((f"a{argument}.d{dim}",))


def stride_of(argument: int, dim: int) -> Known:
    """Return the stride of an argument's buffer along a dimension, in elements."""
    return Known((f"a{argument}.s{dim}",))


def _known(x: Known | int) -> Known:
    return number(x) if isinstance(x, int) else x


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
    if op.name in (DIM, METADATA):
        return _size_or_stride(value, op)
    if op.name not in _OPERATORS and op.name not in _COMPUTED:
        return None
    operands = [known_value(operand) for operand in op.operands]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    if op.name in _OPERATORS:
        return known[0].with_operator(_OPERATORS[op.name], known[1])
    return _COMPUTED[op.name](op, *known)


def _size_or_stride(value: Any, op: Any) -> Known | None:
    """Return the token of a size or stride of an argument's buffer."""
    buffer = op.operands[0]
    if not isinstance(buffer, ir.BlockArgument):
        return None
    argument = ir.BlockArgument(buffer).arg_number
    if op.name == DIM:
        return size_of(argument, op.operands[1].owner.attributes["value"].value)
    rank = ir.MemRefType(buffer.type).rank
    dim = ir.OpResult(value).result_number - 2
    return size_of(argument, dim) if dim < rank else stride_of(argument, dim - rank)


def _ceildiv(_: Any, a: Known, b: Known) -> Known:
    return -(-a // b)


def _floor(operator: str) -> Callable[..., Known | None]:
    """Return what divides where rounding towards 0 is rounding down, as `operator` does."""

    def divided(_: Any, a: Known, b: Known) -> Known | None:
        return a.with_operator(operator, b) if a.is_nonnegative and b.is_nonnegative else None

    return divided


def _shift(operator: str) -> Callable[..., Known | None]:
    """Return what shifts by a number of bits, as `operator` does with a power of two."""

    def shifted(op: Any, a: Known, bits: Known) -> Known | None:
        if len(bits.tokens) > 1 or not bits.is_number or not 0 <= (n := int(str(bits))) < 64:
            return None
        if op.name == "arith.shrui" and not a.is_nonnegative:
            return None
        return a.with_operator(operator, number(1 << n))

    return shifted


def _bits(_: Any, a: Known, mask: Known) -> Known | None:
    """Return the low bits of a value: what is left of it modulo a power of two."""
    if len(mask.tokens) > 1 or not mask.is_number or (n := int(str(mask))) < 0 or n & n + 1:
        return None
    return a % (n + 1)


_COMPUTED: dict[str, Callable[..., Known | None]] = {
    "affine.apply": lambda op, *xs: affine_value(op, xs),
    "arith.ceildivsi": _ceildiv,
    "arith.ceildivui": lambda op, a, b: _ceildiv(op, a, b) if _floor("//")(op, a, b) else None,
    "arith.divsi": _floor("//"),
    "arith.divui": _floor("//"),
    "arith.remsi": _floor("%"),
    "arith.remui": _floor("%"),
    "arith.shli": _shift("*"),
    "arith.shrsi": _shift("//"),
    "arith.shrui": _shift("//"),
    "arith.andi": _bits,
}


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
