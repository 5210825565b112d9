"""What a printer is given: index expressions, SymPy expressions, numbers, layouts."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.sizes import is_sympy
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, construct
from lego_mlir.index.extraction.bit_fields import with_bit_fields
from lego_mlir.index.extraction.cost import weight
from lego_mlir.index.integers import is_numpy_integer


def as_expression(x: Any, language: str) -> Int:
    """Return what is to be printed as an index expression.

    Args:
        x: an integer, an index expression, a SymPy expression, or a slice with no whole
            dimension.
        language: for the error.

    Raises:
        LegoError: it is something else.
    """
    if isinstance(x, Slice) and not x.shape:
        x = with_variables(x).offset()
    if isinstance(x, Expr) or (isinstance(x, int) and not isinstance(x, bool)):
        return min((x, with_bit_fields(x)), key=weight)
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


def with_variables(x: Slice) -> Slice:
    """Return a slice with expressions for its indices: a name is a variable of that name.

    A variable, and a plain SymPy symbol, has the range of its dimension.
    """
    entries = zip(x.index, x.layout.dims, strict=True)
    return Slice(x.layout, tuple(None if i is None else _variable(i, n) for i, n in entries))


def _variable(i: Any, n: Int) -> Any:
    if isinstance(i, str):
        return Sym(i, 0, construct.sub(n, 1))
    if is_sympy(i):
        from lego_mlir.index.sympy_bridge import from_sympy, symbol

        return from_sympy(i, {i: symbol(i, 0, construct.sub(n, 1))} if i.is_Symbol else None)
    return i


def is_list(x: Any) -> bool:
    """Return whether `x` stands for several values, which are printed one by one."""
    return isinstance(x, tuple | list) and not isinstance(x, Layout)
