"""Arguments of a wrong type are named, in every function that makes a ready-made kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from lego_mlir import kernels
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.public import public

FUNCTIONS = [f for name in kernels.__all__ if inspect.isfunction(f := getattr(kernels, name))]


@public
def example(
    n: int,
    shape: Sequence[int],
    scale: float | None = None,
    *,
    mask: Callable[[int | None], int] | None = None,
    named: Mapping[str, int] | None = None,
    anything: int | Sequence[int] | None = None,
) -> Any:
    """Return what comes in."""
    return n, shape, scale, mask, named, anything


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2), {}, "example: shape is a sequence, not 2$"),
        ((1, "12"), {}, "example: shape is a sequence, not '12'$"),
        ((1, (2,), "3"), {}, "example: scale is a number or None, not '3'$"),
        ((1, (2,)), {"mask": 3}, "example: mask is a function or None, not 3$"),
        ((1, (2,)), {"named": [3]}, r"example: named is a dict or None, not \[3\]$"),
        (
            (1,),
            {},
            "missing a required argument: 'shape'\nhint: its arguments: n, shape, ",
        ),
        ((1, (2,)), {"Mask": 3}, "example: got an unexpected keyword argument 'Mask'\nhint: "),
    ],
)
def test_wrong_types(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        example(*args, **kwargs)


def test_right_types() -> None:
    given = np.int64(1), [np.int64(2)], np.float32(3)
    n, shape, scale, *rest = example(*given, mask=len, named={}, anything=None)
    assert (type(n), type(shape[0]), scale, rest) == (int, int, 3, [len, {}, None])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_function_says_so(function: Callable[..., Any]) -> None:
    with pytest.raises(LegoError, match=rf"^error: {function.__name__}: .*\nhint: its arguments: "):
        function(nothing=1)


def test_moves_of_a_number() -> None:
    with pytest.raises(LegoError, match="concatenate: 3 is not a shape"):
        kernels.concatenate([3, 4])  # type: ignore[list-item]
    with pytest.raises(LegoError, match="has no dimension '0'"):
        kernels.concatenate([(3, 4)], axis="0")  # type: ignore[arg-type]
