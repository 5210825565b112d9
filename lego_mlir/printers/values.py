"""What a printer is given: index expressions, SymPy expressions, numbers, layouts."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.sizes import is_numpy_integer, is_sympy
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int


def as_expression(x: Any, language: str) -> Int:
    """Return what is to be printed as an index expression.

    Args:
        x: an integer, an index expression, a SymPy expression, or a slice with no whole dimension.
        language: for the error.

    Raises:
        LegoError: it is something else.
    """
    if isinstance(x, Slice) and not x.shape:
        x = x.offset()
    if isinstance(x, Expr) or (isinstance(x, int) and not isinstance(x, bool)):
        return x
    if is_numpy_integer(x):
        return int(x)
    if is_sympy(x):
        from lego_mlir.index.sympy_bridge import from_sympy

        return from_sympy(x)
    if isinstance(x, Slice):
        raise LegoError(
            f"'{x}' is a tile of offsets, and {language} has an expression for one offset",
            hint="give each dimension an index, or print it for Triton",
        )
    raise LegoError(
        f"{x!r} cannot be printed",
        hint="print a layout, an index expression of it, or a SymPy expression",
    )


def is_list(x: Any) -> bool:
    """Return whether `x` stands for several values, which are printed one by one."""
    return isinstance(x, tuple | list) and not isinstance(x, Layout)
