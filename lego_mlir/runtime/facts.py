"""What the compiled code relies on of the arguments, evaluated before a launch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from lego_mlir.artifact import Artifact, Fact
from lego_mlir.diagnostics import LegoError, Location

T = TypeVar("T")

_OPERATORS: dict[str, Callable[[int, int], int]] = {
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


def check_facts(artifact: Artifact, values: Sequence[Any]) -> None:
    """Check that the arguments are what the code relies on.

    Args:
        artifact: whose code.
        values: one for each argument; of these the scalars count.

    Raises:
        LegoError: a fact does not hold; names the argument, its value and the fact.
    """
    for fact in artifact.facts:
        try:
            if evaluated(fact.condition, values):
                continue
            value = evaluated(fact.value, values)
        except ZeroDivisionError:  # a size of 0, of which another fact tells
            continue
        subject = _text(fact.value, artifact)
        raise LegoError(f"{subject} is {value}, {fact.says}", location=_location(fact))


def evaluated(expression: str, values: Sequence[Any]) -> int:
    """Return the value of a fact's expression on the values of the arguments.

    Raises:
        LegoError: it is no expression.
    """
    return _folded(
        expression,
        lambda token: int(values[int(token[1:])] if token[0] == "a" else token),
        lambda a, sign, b: _OPERATORS[sign](a, b),
    )


def _text(expression: str, artifact: Artifact) -> str:
    """Return the expression in infix notation, with the names of the arguments."""

    def leaf(token: str) -> str:
        return artifact.arguments[int(token[1:])].name if token[0] == "a" else token

    def joined(a: str, sign: str, b: str) -> str:
        return f"{sign}({a}, {b})" if sign.isalpha() else f"({a} {sign} {b})"

    text = _folded(expression, leaf, joined)
    return f"argument '{text}'" if " " not in expression else text


def _folded(expression: str, leaf: Callable[[str], T], join: Callable[[T, str, T], T]) -> T:
    """Evaluate an expression in postfix notation by `leaf` and `join`."""
    stack: list[T] = []
    try:
        for token in _tokens(expression):
            if token in _OPERATORS:
                b, a = stack.pop(), stack.pop()
                stack.append(join(a, token, b))
            else:
                stack.append(leaf(token))
        (result,) = stack
    except (IndexError, ValueError, TypeError):
        raise LegoError(
            f"the artifact has a fact that is not understood: '{expression}'",
            hint="compile it again with this version",
        ) from None
    return result


@lru_cache(maxsize=1024)
def _tokens(expression: str) -> tuple[str, ...]:
    return tuple(expression.split())


def _location(fact: Fact) -> Location | None:
    """Return the location that a text `file:line:column` describes."""
    file, _, column = fact.location.rpartition(":")
    file, _, line = file.rpartition(":")
    if not file or not line.isdecimal() or not column.isdecimal():
        return None
    return Location(file, int(line), int(column))
