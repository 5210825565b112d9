"""What the interpreter computes with: arrays of elements, of which some are invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_ML_DTYPES = {"bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}
"""Floats that NumPy has not, and the package ml_dtypes has."""

_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}

_VALID = np.broadcast_to(np.True_, ())
"""Of a number; the same array for all, since most values of a program are numbers."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tile, or a number that all threads have, which is an array without dimensions.

    Attributes:
        data: the elements.
        valid: of the same shape, which of them are valid. An invalid one holds a number, too: what
            its operation makes of the numbers of its operands.
    """

    data: Array
    valid: Array

    @staticmethod
    def of(data: Any, valid: Any = True) -> Value:
        """Return the value of elements that all are valid, or are where `valid` is true."""
        array = np.asarray(data)
        if valid is True and not array.ndim:
            return Value(array, _VALID)
        return Value(array, np.broadcast_to(np.asarray(valid, bool), array.shape))

    @property
    def is_number(self) -> bool:
        """Whether it is a number that is valid, and known to be without a look at `valid`."""
        return self.valid is _VALID

    def everywhere(self) -> Value:
        """Return the same elements, all of them valid."""
        return self if self.is_number else Value.of(self.data)

    def number(self) -> Any:
        """Return the number that the only element is."""
        return self.data.reshape(-1)[0].item()


@lru_cache(maxsize=64)
def _dtype_named(name: str) -> np.dtype[Any]:
    """Return the dtype of an element type by MLIR's name."""
    if name in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise LegoError(
                f"the interpreter of tile IR computes with {name} by the package ml_dtypes, which "
                "is not installed",
                hint="pip install ml_dtypes",
            ) from None
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
        return found
    if name in _FLOATS:
        return np.dtype(_FLOATS[name])
    if name == "i1":
        return np.dtype(bool)
    if name == "index":
        return np.dtype(np.int64)
    if name in ("i8", "i16", "i32", "i64"):
        return np.dtype(f"int{name[1:]}")
    if name in ("si8", "si16", "si32", "si64", "ui8", "ui16", "ui32", "ui64"):
        return np.dtype(f"{'u' if name[0] == 'u' else ''}int{name[2:]}")
    raise LegoError(
        f"the interpreter of tile IR has no elements of type {name}",
        hint="it has i1, i8 to i64, index, f16, bf16, f32, f64 and the 8-bit floats",
    )


def dtype_of(kind: Any) -> np.dtype[Any]:
    """Return the dtype of an MLIR type: of a tile's or memref's elements, or of a number.

    Raises:
        LegoError: it is no type of elements.
    """
    element = ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind
    return _dtype_named(str(element))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a floating-point format, of NumPy or of ml_dtypes."""
    return dtype.kind not in "iub"


def cast(data: Any, dtype: np.dtype[Any]) -> Array:
    """Return numbers rounded, wrapped or converted to a dtype.

    Conversions to the 8-bit floats saturate, as `cvt.satfinite` does (PTX ISA 9.7.9.21).
    """
    array = np.asarray(data)
    if array.dtype == dtype:
        return array
    if is_float(dtype) and dtype.itemsize == 1:
        import ml_dtypes

        largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        array = np.clip(array.astype(np.float32), -largest, largest)
    return array.astype(dtype)


def number_of(attribute: Any) -> Array:
    """Return the number of an attribute, as an array of its type without dimensions.

    Raises:
        LegoError: the attribute is no number.
    """
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.FloatAttr():
            dtype, number = dtype_of(attribute.type), attribute.value
            return cast(wrapped(number, dtype) if dtype.kind in "iub" else number, dtype)
    raise LegoError(f"'{attribute}' is no number")


def wrapped(number: int, dtype: np.dtype[Any]) -> Array:
    """Return an integer modulo the range of an integer dtype."""
    if dtype.kind == "b":
        return np.asarray(bool(number & 1))
    bits = 8 * dtype.itemsize
    unsigned = np.asarray(number & ((1 << bits) - 1), np.uint64)
    return unsigned.astype(f"uint{bits}").view(dtype)


def everywhere(values: Sequence[Value], shape: tuple[int, ...]) -> Array:
    """Return where all of some values are valid."""
    found = np.ones(shape, bool)
    for value in values:
        found = found & value.valid
    return found
