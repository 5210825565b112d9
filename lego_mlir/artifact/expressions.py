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


class Program:
    """Several expressions as one list of steps: equal subexpressions are computed once.

    A call returns the values of the expressions, in order. It takes what the launch knows of the
    arguments by position: the values of the scalars, and the shapes and the strides of the
    tensors' buffers; what an argument does not have is not looked at.

    Args:
        expressions: their texts.

    Raises:
        LegoError: one is no expression.
    """

    __slots__ = ("_constants", "_results", "_scalars", "_sizes", "_steps", "_strides")

    def __init__(self, expressions: Sequence[str]) -> None:
        nodes: dict[object, int] = {}

        def numbered(node: object) -> int:
            return nodes.setdefault(node, len(nodes))

        roots = [
            folded(text, numbered, lambda a, sign, b: numbered((sign, a, b)))
            for text in expressions
        ]
        operands: list[tuple[int, int | Leaf]] = []
        steps: list[tuple[int, tuple[str, int, int]]] = []
        for node, number in nodes.items():
            if isinstance(node, tuple):
                steps.append((number, node))
            else:
                assert isinstance(node, int | Leaf)
                operands.append((number, node))
        # A call fills its slots in this order.
        order = ["value", "size", "stride"]
        operands.sort(key=lambda o: -1 if isinstance(o[1], int) else order.index(o[1].asks))
        slots = [number for number, _ in (*operands, *steps)]
        slot_of = {number: slot for slot, number in enumerate(slots)}
        leaves = [leaf for _, leaf in operands if isinstance(leaf, Leaf)]
        self._constants = [n for _, n in operands if isinstance(n, int)]
        self._scalars = [leaf.argument for leaf in leaves if leaf.asks == "value"]
        self._sizes = [(x.argument, x.dimension) for x in leaves if x.asks == "size"]
        self._strides = [(x.argument, x.dimension) for x in leaves if x.asks == "stride"]
        self._steps = [(OPERATORS[sign], slot_of[a], slot_of[b]) for _, (sign, a, b) in steps]
        self._results = [slot_of[root] for root in roots]

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
        slots = self._constants.copy()
        add = slots.append
        for argument in self._scalars:
            add(int(values[argument]))
        for argument, dimension in self._sizes:
            add(shapes[argument][dimension])
        for argument, dimension in self._strides:
            add(strides[argument][dimension])
        for operate, a, b in self._steps:
            add(operate(slots[a], slots[b]))
        return [slots[result] for result in self._results]


def _token(text: str) -> Leaf | int | str:
    if text in OPERATORS:
        return text
    leaf = _LEAF.fullmatch(text)
    if leaf is None:
        return int(text)
    return Leaf(int(leaf[1]), _ASKED[leaf[2]], int(leaf[3] or 0))
