"""What functions that users call have in common: errors for wrong types, and warnings."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import lego_mlir
from lego_mlir.diagnostics import LegoError, bound_arguments
from lego_mlir.index.integers import python_integers

P = ParamSpec("P")
R = TypeVar("R")

_SEQUENCE = (lambda x: isinstance(x, Sequence) and not isinstance(x, str)), "a sequence"
_FUNCTION = callable, "a function"
_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("Callable", "Epilogue", "Function", "Mask", "Score"), _FUNCTION),
    "Mapping": ((lambda x: isinstance(x, Mapping)), "a dict"),
    "None": ((lambda x: x is None), "None"),
    "Sequence": _SEQUENCE,
    "Shape": _SEQUENCE,
    "float": ((lambda x: isinstance(x, Real)), "a number"),
}
"""Of what an annotation begins with: what a value has to be, and in words."""

_BETWEEN = re.compile(r"\s*\|\s*(?![^\[]*\])")
"""What stands between the types of a union, which is not in brackets."""


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function say which argument is no sequence, function or number where it needs one.

    It also takes NumPy's integers wherever it takes Python's. What else is wrong with an argument
    is the function's to say.
    """
    signature = inspect.signature(function)
    needed = {
        name: [_KINDS[kind] for kind in kinds]
        for name, parameter in signature.parameters.items()
        if set(kinds := _kinds(str(parameter.annotation))) <= set(_KINDS)
    }

    @wraps(function)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        plain = [python_integers(x) for x in args]
        given = bound_arguments(function, signature, plain, python_integers(kwargs))
        for name, value in given.arguments.items():
            kinds = needed.get(name)
            if kinds is not None and not any(is_kind(value) for is_kind, _ in kinds):
                words = " or ".join(word for _, word in kinds)
                raise LegoError(f"{function.__name__}: {name} is {words}, not {value!r}")
        return function(*given.args, **given.kwargs)

    return checking


def _kinds(annotation: str) -> list[str]:
    """Return what each type of a union begins with: `Sequence` and `None`."""
    return [kind.partition("[")[0] for kind in _BETWEEN.split(annotation)]


def warn_user(warning: str) -> None:
    """Warn at the line that called into the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


_PACKAGE = str(Path(lego_mlir.__file__).parent) + os.sep
