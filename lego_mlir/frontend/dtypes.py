"""The element types that a kernel may name, by MLIR's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.diagnostics import LegoError

DTYPES = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "f8E4M3FN", "f8E5M2")


def check_dtype(dtype: Any, error: Callable[..., LegoError] = LegoError) -> None:
    """Raise the error that `error` makes unless `dtype` is an element type."""
    if dtype not in DTYPES:
        raise error(f"{dtype!r} is no element type", hint=f"known: {', '.join(DTYPES)}")
