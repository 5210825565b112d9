"""The element types that a kernel may name: MLIR's names, and those of unsigned integers.

An integer of MLIR has no sign. `u32` is `i32` whose shifts, quotients, comparisons, extremes and
conversions are those of unsigned numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.mlir.bindings import ir

FLOATS = ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2")
INTEGERS = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
DTYPES = (*FLOATS, *INTEGERS, *UNSIGNED)


def check_dtype(dtype: Any, error: Callable[..., LegoError] = LegoError) -> None:
    """Raise the error that `error` makes unless `dtype` is an element type."""
    if dtype not in DTYPES:
        same = _of_other_packages(dtype)
        guess = f'write "{same}"; ' if same else ""
        raise error(f"{dtype!r} is no element type", hint=f"{guess}known: {', '.join(DTYPES)}")


def _of_other_packages(dtype: Any) -> str | None:
    """Return our name of a type of NumPy, PyTorch or Triton, or of its name; else `None`."""
    name = getattr(dtype, "__name__", str(dtype)).rpartition(".")[2].lower().replace("_", "")
    for theirs, ours in (("bfloat", "bf"), ("float", "f"), ("fp", "f"), ("int", "i"), ("ui", "u")):
        name = name.replace(theirs, ours)
    return {known.lower(): known for known in DTYPES}.get(name)


def is_unsigned(dtype: str) -> bool:
    """Return whether a type is one of unsigned integers."""
    return dtype in UNSIGNED


def mlir_name(dtype: str) -> str:
    """Return MLIR's name of an element type."""
    return dtype.replace("u", "i") if is_unsigned(dtype) else dtype


def bytes_of(dtype: str) -> int:
    """Return the bytes of an element."""
    return ELEMENT_BYTES[mlir_name(dtype)]


def mlir_element(dtype: str) -> Any:
    """Return the MLIR type of an element type, in the current context."""
    return ir.Type.parse(mlir_name(dtype))


@lru_cache(maxsize=1 << 8)
def _name_of(element: Any) -> str:
    """Return an MLIR type as text."""
    return str(element)


def dtype_of(element: Any, *, unsigned: bool = False) -> str:
    """Return the name of the element type that an MLIR type stands for."""
    name = _name_of(element)
    return name.replace("i", "u") if unsigned else name
