"""What may stand for an index: numbers, arrays, index expressions, and SymPy's expressions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.algebra.sizes import is_sympy
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, bounds, construct
from lego_mlir.index.functions import is_array
from lego_mlir.index.proofs import prover

_MOST_IN_INT64 = 1 << 61
"""Above it what a permutation computes on the way, twice a position, may not fit."""


def check_int64(size: Int, owner: str) -> None:
    """Raise LegoError where positions below `size` are too large for arrays of int64."""
    if isinstance(size, int) and size > _MOST_IN_INT64:
        raise LegoError(
            f"{owner} has {size} elements: too many for int64 arrays",
            hint="Python integers have no such limit",
        )


def check_broadcast(index: Sequence[Any], what: str) -> None:
    """Raise LegoError where arrays, and numbers among them, have shapes that do not broadcast."""
    import numpy as np

    shapes = [np.shape(i) for i in index if is_array(i)]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(str(list(shape)) for shape in shapes)
        raise LegoError(f"{what} have shapes that do not broadcast: {shown}") from None


def checked(i: Any, n: Int, owner: str) -> Any:
    """Return `i` if it may stand for a number in [0, n); arrays come back as int64."""
    if isinstance(i, Expr):
        lo, hi = bounds(i)
        if (hi is not None and hi < 0) or (isinstance(n, int) and lo is not None and lo >= n):
            raise LegoError(f"{owner} is out of range: {i!r} is never in [0, {n!r})")
        return i
    if not is_array(i):
        if isinstance(i, bool) or not isinstance(i, int):
            raise LegoError(f"{owner} must be an integer, an array or a symbol, not {i!r}")
        if i < 0 or prover.is_nonnegative(construct.sub(i, n)):
            raise LegoError(f"{owner} is out of range: {i} is not in [0, {n!r})")
        return i
    if i.dtype.kind not in "iu":
        raise LegoError(f"{owner} must be integers, not {i.dtype}")
    if not isinstance(n, int):
        raise LegoError(
            f"{owner} is an array, but the size {n!r} is symbolic", hint="bind the sizes first"
        )
    if i.size and (i.min() < 0 or i.max() >= n):
        worst = i.min() if i.min() < 0 else i.max()
        raise LegoError(f"{owner} is out of range: {worst} is not in [0, {n})")
    return i.astype("int64")


def through_sympy(
    values: Sequence[Any],
    dims: Sequence[Int],
    sizes: Sequence[Sym],
    compute: Callable[..., Any],
) -> Any:
    """Return what `compute` makes of values, converted from SymPy and back.

    A plain symbol among them counts as an index of its dimension, so its range is known. A positive
    integer symbol with the name of a size is that size, with all that is known to divide it.
    """
    from lego_mlir.index.sympy_bridge import from_sympy, symbol, to_sympy

    sympy = sys.modules["sympy"]
    named = {s.name: s for s in sizes}
    known: dict[Any, Any] = {}
    for x, n in zip(values, dims, strict=True):
        if is_sympy(x) and x.is_Symbol:
            known.setdefault(x, symbol(x, lo=0, hi=construct.sub(n, 1)))
    for x in values:
        for s in x.free_symbols if is_sympy(x) else ():
            size = named.get(s.name) if s.is_integer and s.is_positive else None
            known.setdefault(s, symbol(s) if size is None else size)
    result = compute([from_sympy(x, known) if is_sympy(x) else x for x in values])
    back = {sym: s for s, sym in known.items()}
    if isinstance(result, tuple):
        return tuple(to_sympy(r, back) for r in result)
    return to_sympy(result, back) if isinstance(result, int | Expr) else sympy.sympify(result)
