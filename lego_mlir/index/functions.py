"""The functions that a permutation may use besides the operators.

They work on Python integers, NumPy arrays, index expressions and SymPy expressions alike, so one
pair of Python functions serves enumeration, proof and code generation. What has a method
`__lego_minimum__`, `__lego_maximum__` or `__lego_where__` brings its own, as values inside of
kernels do.
"""

from __future__ import annotations

from math import isqrt as integer_isqrt
from typing import Any, TypeAlias

from lego_mlir.index import construct
from lego_mlir.index.nodes import Expr
from lego_mlir.index.operands import combined

Value: TypeAlias = Any
"""An int, a NumPy integer array or an index expression."""


def is_array(x: Value) -> bool:
    """Return whether `x` is a NumPy array or scalar, without importing NumPy."""
    return type(x).__module__ == "numpy"


def where(condition: Value, a: Value, b: Value) -> Value:
    """Return `a` where `condition` holds, else `b`."""
    if any(isinstance(x, Expr) for x in (condition, a, b)):
        return combined(construct.where, condition, a, b)
    if is_array(condition) or is_array(a) or is_array(b):
        import numpy as np

        return np.where(condition, a, b)
    for x in (condition, a, b):
        if hasattr(x, "__lego_where__"):
            return x.__lego_where__(condition, a, b)
    return a if condition else b


def minimum(a: Value, b: Value) -> Value:
    """Return the lesser of `a` and `b`."""
    if isinstance(a, Expr) or isinstance(b, Expr):
        return combined(construct.minimum, a, b)
    if is_array(a) or is_array(b):
        import numpy as np

        return np.minimum(a, b)
    for x in (a, b):
        if hasattr(x, "__lego_minimum__"):
            return x.__lego_minimum__(a, b)
    return min(a, b)


def maximum(a: Value, b: Value) -> Value:
    """Return the greater of `a` and `b`."""
    if isinstance(a, Expr) or isinstance(b, Expr):
        return combined(construct.maximum, a, b)
    if is_array(a) or is_array(b):
        import numpy as np

        return np.maximum(a, b)
    for x in (a, b):
        if hasattr(x, "__lego_maximum__"):
            return x.__lego_maximum__(a, b)
    return max(a, b)


def isqrt(x: Value) -> Value:
    """Return the integer square root, exact at every size.

    Floating point alone is not: an array is rooted in double precision and then corrected by
    one in either direction, which makes it exact for values below 2**62.
    """
    if isinstance(x, Expr):
        return combined(construct.isqrt, x)
    if is_array(x):
        import numpy as np

        root = np.floor(np.sqrt(np.maximum(x, 0).astype(np.float64))).astype(np.int64)
        root = np.where(root * root > x, root - 1, root)
        return np.where((root + 1) * (root + 1) <= x, root + 1, root)
    return integer_isqrt(x)
