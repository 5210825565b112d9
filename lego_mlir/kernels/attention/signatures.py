"""Functions that take any keyword, with parameters of given names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any


def with_names(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Give a function of keywords the names of its parameters, and return it."""
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY) for name in dict.fromkeys(names)]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function
