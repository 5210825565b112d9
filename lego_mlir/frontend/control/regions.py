"""Regions of control flow: what their functions take and return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.frontend.trace import Trace
from lego_mlir.frontend.values import Value, as_index, as_value
from lego_mlir.mlir.bindings import ir


def as_values(given: Any, trace: Trace, what: str) -> tuple[Value, ...]:
    """Return values, or numbers as values: integers as indices, others of f32, truths of i1.

    Args:
        given: one of them, a tuple, or `None` for none.
        trace: of the kernel.
        what: the construct, for errors.

    Raises:
        LegoError: one is neither a value nor a number.
    """
    several = () if given is None else given if isinstance(given, tuple) else (given,)
    return tuple(_as_value(x, trace, what) for x in several)


def _as_value(x: Any, trace: Trace, what: str) -> Value:
    if isinstance(x, Value):
        return x
    if hasattr(x, "item") and getattr(x, "ndim", None) == 0:  # NumPy's number
        x = x.item()
    match x:
        case bool():
            return as_value(x, ir.IntegerType.get_signless(1), trace)
        case int():
            return as_index(x, trace)
        case float():
            return as_value(x, ir.F32Type.get(), trace)
    raise trace.error(
        f"{what} takes kernel values, not {x!r}",
        hint='numbers, and lg.full((128,), 0, "f32"), a vector or tile of them, are such values',
    )


def call(
    function: Callable[..., Any], arguments: Sequence[Any], trace: Trace, what: str, takes: str
) -> Any:
    """Return what a function of the user returns for arguments, if it takes so many.

    Args:
        function: of the user.
        arguments: by position.
        trace: of the kernel.
        what: says whose function it is; errors begin with it.
        takes: what it should take, for errors.

    Raises:
        LegoError: it is no function, or has other parameters.
    """
    if not callable(function):
        raise trace.error(f"{what} is a function, not {function!r}", hint=f"it takes {takes}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a built-in function may have none
        return function(*arguments)
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise trace.error(
            f"{what} has the parameters {signature}, and is called with {len(arguments)} "
            f"argument{'s' * (len(arguments) != 1)}",
            hint=f"it takes {takes}",
        ) from error
    return function(*arguments)


def bound(block: Any, models: Sequence[Value], first: int = 0) -> list[Value]:
    """Return the arguments of a block as values like others, from the argument `first` on."""
    return [x.like(a) for x, a in zip(models, list(block.arguments)[first:], strict=True)]


def matched(
    found: Any, models: Sequence[Value], trace: Trace, what: str, hint: str | None = None
) -> list[Any]:
    """Return the SSA values that a function returned, which have the types of others.

    Args:
        found: what it returned; numbers become values of the type that is needed.
        models: values of the types.
        trace: of the kernel.
        what: says who needs which types; errors begin with it.
        hint: of errors.

    Raises:
        LegoError: there are more or fewer, or of other types.
    """
    values = () if found is None else found if isinstance(found, tuple) else (found,)
    if len(values) == len(models):
        met = [_matched(x, model, trace) for x, model in zip(values, models, strict=True)]
        if all(ssa is not None for ssa in met):
            return met
    expected = ", ".join(x.described for x in models) or "nothing"
    have = ", ".join(x.described if isinstance(x, Value) else repr(x) for x in values) or "nothing"
    raise trace.error(
        f"{what} {expected}, its function returns {have}",
        hint=hint,
    )


def _matched(x: Any, model: Value, trace: Trace) -> Any:
    if not isinstance(x, Value):
        is_number = isinstance(x, int | float) and not model.shape
        return as_value(x, model.ssa.type, trace).ssa if is_number else None
    same = x.ssa.type == model.ssa.type and (x.shape, x.dtype) == (model.shape, model.dtype)
    return x.ssa if same else None


def given_back(models: Sequence[Value], results: Sequence[Any], *, one: bool) -> Any:
    """Return the results of an operation as values like others: one, a tuple, or `None`."""
    values = tuple(x.like(r) for x, r in zip(models, results, strict=True))
    return values[0] if one and len(values) == 1 else values or None
