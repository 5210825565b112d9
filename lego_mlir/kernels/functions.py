"""Functions of values that they name as parameters, and how they get names that options decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
"""A function of tiles, which it names: arguments, what is loaded, statistics, indices."""


def names_of(function: Function) -> tuple[str, ...]:
    """Return the names of the values that a function takes."""
    is_hashable = type(function).__hash__ is not None
    return _names_of(function) if is_hashable else _parameters(function)


def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(signature(function).parameters)


_names_of = lru_cache(maxsize=1 << 10)(_parameters)


def taking(names: Iterable[str], function: Callable[[dict[str, Any]], Any]) -> Function:
    """Return a function of values by name, of one that takes them in a dict.

    It is for kernels whose options decide which values there are.
    """

    def named(**values: Any) -> Any:
        return function(values)

    return with_names(named, names)


def with_names(function: Function, names: Iterable[str]) -> Function:
    """Give a function of keywords the names of its parameters, and return it."""
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY) for name in dict.fromkeys(names)]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function
