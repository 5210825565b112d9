"""What functions that users call have in common: errors for wrong types, and warnings."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import lego_mlir
from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError, bound_arguments
from lego_mlir.frontend.dtypes import check_dtype
from lego_mlir.index.integers import python_integers

P = ParamSpec("P")
R = TypeVar("R")

_SEQUENCE = (lambda x: isinstance(x, Sequence) and not isinstance(x, str)), "a sequence"
_FUNCTION = callable, "a function"


def _instance_of(kind: str) -> tuple[Callable[[Any], bool], str]:
    """Return whether a value is of a class of this name, which may not be imported yet."""
    return (lambda x: any(c.__name__ == kind for c in type(x).__mro__)), f"a {kind}"


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("Callable", "Epilogue", "Function", "Mask", "Score"), _FUNCTION),
    "Mapping": ((lambda x: isinstance(x, Mapping)), "a dict"),
    **{kind: _instance_of(kind) for kind in ("AttentionConfig", "RowsConfig")},
    "Layout": ((lambda x: isinstance(x, Layout)), "a layout, such as OrderBy(Col(4, 8)),"),
    "None": ((lambda x: x is None), "None"),
    "Sequence": _SEQUENCE,
    "Shape": _SEQUENCE,
    "bool": ((lambda x: isinstance(x, bool)), "True or False"),
    "float": ((lambda x: isinstance(x, Real)), "a number"),
}
"""Of what an annotation begins with: what a value has to be, and in words."""

IN_F32 = ("f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")
"""Floating-point types whose numbers f32 has."""

NUMBERS_IN_F32 = (*IN_F32, "i8", "i16", "u8", "u16")
"""Types whose numbers f32 has."""

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


def check_types(name: str, known: tuple[str, ...] = IN_F32, **dtypes: str | None) -> None:
    """Check the element types that a kernel is asked for which computes in f32.

    Args:
        name: of the kernel.
        known: the types that it takes.
        dtypes: by the name of the argument; `None` where it is left out.

    Raises:
        LegoError: one is no element type, or none of these.
    """
    for argument, dtype in dtypes.items():
        if dtype is None or dtype in known:
            continue
        check_dtype(dtype, partial(_type_error, f"{name}: {argument}"))
        raise LegoError(
            f"{name}: {argument} is {', '.join(known[:-1])} or {known[-1]}, not '{dtype}'",
            hint="it computes in f32, which has not all numbers of other types; "
            "kernels.cast converts an array",
        )


def _type_error(argument: str, message: str, hint: str) -> LegoError:
    return LegoError(f"{argument}: {message}", hint=hint)


def warn_user(warning: str) -> None:
    """Warn at the line that called into the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


_PACKAGE = str(Path(lego_mlir.__file__).parent) + os.sep
