"""Expressions that a launch evaluates: conditions, grids and sizes that depend on its arguments.

An expression is a text in postfix notation: each operator stands behind its two operands. Its
leaves are integers and

    a3       the scalar argument 3
    a3.d1    the size of the tensor argument 3 along dimension 1 of its buffer
    a3.s0    its stride along dimension 0, in elements

so `a0.d0 127 + 128 //` is the number of tiles of 128 rows of the first argument. Division and
modulo round down, as Python's do.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from lego_mlir.artifact.straight_line import function
from lego_mlir.diagnostics import LegoError

T = TypeVar("T")

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "<": operator.lt,
    ">=": operator.ge,
    "==": operator.eq,
}

_TOKEN = r"(?:a[0-9]{1,4}(?:\.[ds][0-9]{1,2})?|-?[0-9]{1,20}|//|[-+*%<]|>=|==|min|max)"
PATTERN = rf"(?=.{{1,4096}}$){_TOKEN}(?: {_TOKEN})*"
"""What the text of an expression matches."""

_LEAF = re.compile(r"a([0-9]+)(?:\.([ds])([0-9]+))?")

Asked = Literal["value", "size", "stride"]
_ASKED: dict[str | None, Asked] = {None: "value", "d": "size", "s": "stride"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """What an expression asks of an argument.

    Attributes:
        argument: its position.
        asks: for the value of a scalar, or the size or stride of a tensor's buffer.
        dimension: of the size or stride.
    """

    argument: int
    asks: Asked = "value"
    dimension: int = 0


@lru_cache(maxsize=1024)
def tokens(expression: str) -> tuple[Leaf | int | str, ...]:
    """Return the tokens of an expression: leaves, numbers and operators.

    Raises:
        ValueError: a token is none of these.
    """
    return tuple(_token(text) for text in expression.split())


def folded(expression: str, leaf: Callable[[Leaf | int], T], join: Callable[[T, str, T], T]) -> T:
    """Evaluate an expression by functions.

    Args:
        expression: its text.
        leaf: returns what a leaf or a number is.
        join: returns what an operator makes of its operands.

    Raises:
        LegoError: it is no expression.
    """
    stack: list[T] = []
    try:
        for token in tokens(expression):
            if isinstance(token, str):
                b, a = stack.pop(), stack.pop()
                stack.append(join(a, token, b))
            else:
                stack.append(leaf(token))
        (result,) = stack
    except (IndexError, ValueError):
        raise not_understood(expression) from None
    return result


def not_understood(expression: str) -> LegoError:
    """Return the error of an expression that is none, or not one of the artifact's arguments."""
    return LegoError(
        f"the artifact has an expression that is not understood: '{expression}'",
        hint="compile it again with this version",
    )


def statements(
    expressions: Sequence[str], leaf: Callable[[Leaf], str]
) -> tuple[list[str], list[str]]:
    """Return assignments in Python that compute expressions, and the name or number of each.

    Equal subexpressions are computed once.

    Args:
        expressions: their texts.
        leaf: returns the Python of a leaf.

    Raises:
        LegoError: one is no expression.
    """
    names: dict[str, str] = {}

    def named(text: str) -> str:
        return names.setdefault(text, f"t{len(names)}")

    def of_leaf(token: Leaf | int) -> str:
        return str(token) if isinstance(token, int) else named(leaf(token))

    def joined(a: str, sign: str, b: str) -> str:
        return named(f"{sign}({a}, {b})" if sign.isalpha() else f"{a} {sign} {b}")

    results = [folded(text, of_leaf, joined) for text in expressions]
    return [f"{name} = {text}" for text, name in names.items()], results


FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "int": int}
"""What statements call."""


class Program:
    """Several expressions as one function.

    A call returns the values of the expressions, in order. It takes what the launch knows of the
    arguments by position: the values of the scalars, and the shapes and the strides of the
    tensors' buffers; what an argument does not have is not looked at.

    Args:
        expressions: their texts.

    Raises:
        LegoError: one is no expression.
    """

    __slots__ = ("_function",)

    def __init__(self, expressions: Sequence[str]) -> None:
        lines, results = statements(expressions, _of_known)
        self._function = function(
            ("values", "shapes", "strides"), [*lines, f"return [{', '.join(results)}]"], FUNCTIONS
        )

    def __call__(
        self,
        values: Sequence[int],
        shapes: Sequence[Sequence[int]],
        strides: Sequence[Sequence[int]],
    ) -> list[int]:
        """Return the value of each expression.

        Raises:
            ZeroDivisionError: one divides by 0.
        """
        found: list[int] = self._function(values, shapes, strides)
        return found


def _of_known(leaf: Leaf) -> str:
    """Return the Python of a leaf in a `Program`."""
    if leaf.asks == "value":
        return f"int(values[{leaf.argument}])"
    return f"{'shapes' if leaf.asks == 'size' else 'strides'}[{leaf.argument}][{leaf.dimension}]"


def _token(text: str) -> Leaf | int | str:
    if text in OPERATORS:
        return text
    leaf = _LEAF.fullmatch(text)
    if leaf is None:
        return int(text)
    return Leaf(int(leaf[1]), _ASKED[leaf[2]], int(leaf[3] or 0))
