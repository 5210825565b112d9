"""NumPy's integers where Python's are needed: `np.prod(shape)` is a size like any other."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def is_numpy_integer(x: Any) -> bool:
    """Return whether `x` is one of NumPy's integer scalars, without importing NumPy."""
    if type(x).__module__ != "numpy" or not hasattr(x, "dtype"):
        return False
    return x.dtype.kind in "iu" and x.shape == ()


def python_integers(x: Any) -> Any:
    """Return `x` with NumPy's integers as Python's, also those in arrays, tuples, lists and dicts.

    An array becomes a list.
    """
    kind = type(x)
    if kind is tuple or kind is list:
        return kind(map(python_integers, x))
    if kind is dict:
        return {name: python_integers(value) for name, value in x.items()}
    is_numpy = kind.__module__ == "numpy" and hasattr(x, "tolist") and x.dtype.kind in "iu"
    return x.tolist() if is_numpy else x


def takes_numpy_integers(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function take NumPy's integers wherever it takes Python's."""

    @wraps(function)
    def taking(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*map(python_integers, args), **python_integers(kwargs))

    return taking
