"""Errors that Python raises for kernel values, as errors that name the function to use instead."""

from __future__ import annotations

import re
import sys
from types import ModuleType

from lego_mlir.diagnostics import LegoError, Location, did_you_mean
from lego_mlir.frontend.tensors import TensorValue
from lego_mlir.frontend.values import Value

_FUNCTIONS = "lg.exp, lg.log, lg.sqrt, lg.abs, lg.where, lg.maximum, lg.minimum and others"

_NAMESAKES = re.findall(
    r"\w+",
    "exp exp2 log log2 sqrt sin cos erf tanh floor ceil round pow fma "
    "where maximum minimum sum prod max min any all argmax argmin cumsum cumprod",
)
"""Functions that have the same name in Python, `math` or NumPy."""

_INSTEAD = {
    **{name: f"lg.{name} takes kernel values" for name in _NAMESAKES},
    "abs": "lg.abs(x) is the absolute value of x",
    "clip": "lg.clamp(x, low, high)",
    "range": "lg.loop(n) is a loop of the kernel",
    "float": 'x.to("f32") converts a kernel value',
    "int": 'x.to("i32") converts a kernel value',
}
"""What to write instead of a function of Python, `math` or NumPy, by that function's name."""

_SAME = {"fabs": "abs", "absolute": "abs", "rint": "round", "power": "pow", "amax": "max"}

_CALL = re.compile(r"(?:[\w.]*\.)?(\w+)\(")


def is_ours(error: AttributeError) -> bool:
    """Return whether what has no such attribute is a kernel value or this package."""
    return isinstance(error.obj, Value | TensorValue) or error.obj is _package()


def python_error(
    error: TypeError | AttributeError | RecursionError, location: Location, source: str | None
) -> LegoError:
    """Return the error of a kernel whose function raised it, or called too deeply.

    Args:
        error: what Python raised.
        location: the expression that raised it.
        source: the text of the file.
    """
    if isinstance(error, RecursionError):
        return LegoError(
            "functions that the kernel calls call one another without end, or too deeply",
            location=location,
            hint="if they have an end, sys.setrecursionlimit gives them more room",
            source=source,
        )
    if isinstance(error, AttributeError):
        return _no_attribute(error, location, source)
    name = _called(location, source)
    is_call = "keyword argument" in str(error) or "positional argument" in str(error)
    hint = None if is_call else _INSTEAD.get(_SAME.get(name, name))
    if "for @:" in str(error):
        hint = "lg.dot(a, b) multiplies tiles"
    if hint is None and not is_call:
        hint = f"functions of kernel values are {_FUNCTIONS}"
    message = f"Python raises TypeError in the kernel: {error}"
    return LegoError(message, location=location, hint=hint, source=source)


def _no_attribute(error: AttributeError, location: Location, source: str | None) -> LegoError:
    """Return the error of an attribute that a kernel value or this package has not."""
    package, owner, name = _package(), error.obj, str(error.name)
    hint: str | None = None
    if isinstance(owner, TensorValue):
        what, wrong = f"a tensor has no attribute '{name}'", name
        known = [public for public in dir(owner) if not public.startswith("_")]
        hint = did_you_mean(wrong, known) or (
            "x[i, :] and x.tile(8, 64)[i, j] load a tile, and assignments to them store one"
        )
    elif isinstance(owner, Value):
        what, wrong = f"{owner.described} has no attribute '{name}'", name
        known = [public for public in dir(owner) if not public.startswith("_")]
        if name in dir(package):
            hint = f"lg.{name} is a function"
        if name in ("astype", "type", "cast"):
            hint = '.to("f32") converts a value'
    else:
        what, wrong = f"there is no lg.{name}", f"lg.{name}"
        hint = next(iter(getattr(error, "__notes__", ())), None)
        known = [f"lg.{public}" for public in dir(package)]
    hint = hint or did_you_mean(wrong, known)
    return LegoError(what, location=location, hint=hint, source=source)


def _package() -> ModuleType:
    return sys.modules["lego_mlir"]


def _called(location: Location, source: str | None) -> str:
    """Return the name of the function that is called at a location; empty if none is."""
    lines = (source or "").split("\n")
    if not 1 <= location.line <= len(lines) or location.column < 1:
        return ""
    found = _CALL.match(lines[location.line - 1].encode()[location.column - 1 :].decode())
    return found[1] if found else ""
