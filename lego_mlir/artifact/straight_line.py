"""Functions of straight-line Python, for what launches on new sizes wait for.

Their lines are ours: of an artifact they have nothing but integers, and the operators of
expressions that were parsed before. So nothing that an artifact says is run as a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any


def function(
    parameters: Sequence[str], lines: Sequence[str], known: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the function with some statements.

    Args:
        parameters: its names for its arguments.
        lines: the statements, one a line.
        known: what other names stand for; there are no built-in ones.
    """
    text = f"def straight_line({', '.join(parameters)}):\n" + "".join(f" {x}\n" for x in lines)
    (code,) = (x for x in compile(text, "<launch>", "exec").co_consts if isinstance(x, CodeType))
    return FunctionType(code, {**known, "__builtins__": {}})
