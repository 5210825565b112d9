"""Numbers that stand for what is not there: the identity of each kind of combination."""

from __future__ import annotations

from math import inf
from typing import Any

from lego_mlir.mlir.bindings import ir

_FLOATS = {"add": 0.0, "mul": 1.0, "max": -inf, "min": inf}


def identity(kind: str, element: Any) -> Any:
    """Return the attribute of the number that combined with another one leaves it as it is.

    Args:
        kind: by what they are combined, one of `KINDS`.
        element: their type.
    """
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr.get(element, _FLOATS[kind])
    bits = element.width if isinstance(element, ir.IntegerType) else 64
    numbers = {
        "add": 0,
        "mul": 1,
        "umax": 0,
        "umin": -1,
        "and": -1,
        "or": 0,
        "xor": 0,
        "max": -(1 << bits - 1),
        "min": (1 << bits - 1) - 1,
    }
    return ir.IntegerAttr.get(element, numbers[kind])


def zero(element: Any) -> Any:
    """Return the attribute of an element type's 0."""
    return identity("add", element)
