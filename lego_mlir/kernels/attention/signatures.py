"""What kernels of attention do with their arguments: their names, and numbers of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

from lego_mlir.index import minimum
from lego_mlir.kernels.attention.tensors import MOST_TOKENS


def with_names(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Give a function of keywords the names of its parameters, and return it."""
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY) for name in dict.fromkeys(names)]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function


def page_number(table: Any, batch: Any, page: Any) -> Any:
    """Return the number of a page of a sequence; what is none of the cache's is not accessed.

    A negative number becomes one that is larger than any, so that there are no elements at it.
    """
    return minimum(table[batch, page].to("u32"), MOST_TOKENS - 1).below(MOST_TOKENS)
