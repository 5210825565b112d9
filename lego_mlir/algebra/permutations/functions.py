"""A user's own permutation, and the inverse of any: permutations made from others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lego_mlir.algebra.permutations.permutation import Index, Permutation, flatten, unflatten
from lego_mlir.algebra.permutations.swizzles import swizzle
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int


def from_functions(
    f: Callable[..., Any], f_inv: Callable[..., Any], text: str | None = None
) -> Permutation:
    """Return a user's own permutation.

    Args:
        f: takes one index a dimension, returns the flat position.
        f_inv: takes the flat position, returns the tuple of indices.
        text: how it is written in a layout; by default by the functions' names.

    Raises:
        LegoError: a function has no name; on use, if one takes or returns another number of values.
    """
    if text is None:
        text = f"@{_name_of(f)}, @{_name_of(f_inv)}"
    name, inverse_name = text.split(", ")

    def block(dims: tuple[Int, ...]) -> str:
        return f"GenP({sizes_text(dims)}, {name}, {inverse_name})"

    def forward(dims: tuple[Int, ...], index: Index) -> Any:
        flat = f(*index)
        if isinstance(flat, tuple | list):
            raise LegoError(
                f"{block(dims)}: {name} returns {len(flat)} values, not one flat position"
            )
        return flat

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        index = f_inv(flat)
        index = tuple(index) if isinstance(index, tuple | list) else (index,)
        if len(index) != len(dims):
            raise LegoError(
                f"GenP: the inverse function returns {len(index)} indices, the tile has {len(dims)}"
            )
        return index

    def check(dims: tuple[Int, ...]) -> None:
        if (takes := _other_count(f, len(dims))) is not None:
            raise LegoError(
                f"{block(dims)}: {name} takes {takes} {'index' if takes == 1 else 'indices'}, "
                f"the tile has {len(dims)}"
            )
        if (takes := _other_count(f_inv, 1)) is not None:
            raise LegoError(
                f"{block(dims)}: the inverse function {inverse_name} takes {takes} "
                f"value{'s' * (takes != 1)}, not one flat position"
            )

    return Permutation(text, forward, inverse, check, functions=(f, f_inv))


def as_permutation(
    f: Any, f_inv: Callable[..., Any] | None = None, owner: str = "GenP"
) -> Permutation:
    """Return the arguments of a GenP, a permutation or a pair of functions, as a permutation.

    Raises:
        LegoError: it is neither; names the owner.
    """
    if f is swizzle:  # named without parameters, as in a layout's text
        f = swizzle()
    if isinstance(f, Permutation):
        if f_inv is not None:
            raise LegoError(f"{owner}: '{f.text}' brings its own inverse; f_inv is one too many")
        return f
    if not callable(f):
        raise LegoError(f"{owner}: {f!r} is neither a permutation nor a function")
    if not callable(f_inv):
        raise LegoError(
            f"{owner}: a function needs its inverse",
            hint="give both: f, f_inv, with f_inv from the flat position to the indices",
        )
    return from_functions(f, f_inv)


def inverse(f: Permutation | Callable[..., Any], f_inv: Any = None) -> Permutation:
    """Return the permutation of the same tile that undoes another, flat position for flat position.

    What `f` puts at flat position y, from the element of flat index x, `inverse(f)` puts at x from
    the element y: `GenP(dims, inverse(f))` applied after `GenP(dims, f)` leaves all as it was.

    Args:
        f: a named permutation, or a function as in `GenP(dims, f, f_inv)`.
        f_inv: with a function, its inverse.
    """
    permutation = as_permutation(f, f_inv, "inverse")
    if permutation.is_involution:
        return permutation
    if permutation.inverse_of is not None:
        return permutation.inverse_of
    return Permutation(
        f"inverse({permutation.text})",
        lambda dims, index: flatten(dims, permutation.inverse(dims, flatten(dims, index))),
        lambda dims, flat: unflatten(dims, permutation.forward(dims, unflatten(dims, flat))),
        permutation.check,
        permutation.functions,
        inverse_of=permutation,
        divisors=permutation.divisors,
    )


def _other_count(f: Callable[..., Any], count: int) -> int | None:
    """Return how many values a function takes if it does not take `count`, else `None`."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some that are not written in Python do not say
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    if count < least:
        return least
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return None if takes_any or count <= len(positional) else len(positional)


def _name_of(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", "")
    if not name.isidentifier():
        raise LegoError(
            f"GenP: a permutation function needs a name to be printed by, {name or f!r} is none",
            hint="define it with def",
        )
    return name
