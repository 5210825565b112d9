"""MLIR's element types as NumPy's.

`bf16` and the `f8…` types have no NumPy dtype; their values travel as raw bits in `uint16` and
`uint8`. Arrays of the package ml_dtypes are recognised by name and viewed as bits, without a
dependency on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES, FLOATS

if TYPE_CHECKING:
    from lego_mlir.artifact import Argument

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FloatBits:
    """A floating-point format carried as raw bits: 1 sign bit, then exponent, then mantissa."""

    exponent: int
    mantissa: int
    ml_dtype: str

    @property
    def bias(self) -> int:
        """What is subtracted from the stored exponent."""
        return (1 << (self.exponent - 1)) - 1


_RAW: dict[str, FloatBits] = {
    "bf16": FloatBits(8, 7, "bfloat16"),
    "f8E4M3FN": FloatBits(4, 3, "float8_e4m3fn"),
    "f8E5M2": FloatBits(5, 2, "float8_e5m2"),
}


def _numpy_name(name: str, size: int) -> str:
    """Return the name of the NumPy dtype that carries an MLIR element type of `size` bytes."""
    if name == "i1":
        return "bool"
    is_unsigned = name in _RAW or name.startswith("u")
    kind = "uint" if is_unsigned else "float" if name in FLOATS else "int"
    return f"{kind}{8 * size}"


_NUMPY: dict[str, np.dtype[Any]] = {
    name: np.dtype(_numpy_name(name, size)) for name, size in ELEMENT_BYTES.items()
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype that carries an MLIR element type.

    Raises:
        LegoError: the type cannot cross to NumPy.
    """
    try:
        return _NUMPY[name]
    except KeyError:
        raise LegoError(
            f"element type '{name}' cannot be passed to a kernel",
            hint=f"use one of {', '.join(_NUMPY)}",
        ) from None


def names() -> tuple[str, ...]:
    """Return the MLIR names of all element types that NumPy can carry."""
    return tuple(_NUMPY)


def is_float(name: str) -> bool:
    """Return whether the MLIR type is a floating-point type."""
    return name in FLOATS


def matches(found: np.dtype[Any], name: str) -> bool:
    """Return whether arrays of dtype `found` hold elements of the MLIR type.

    `i32` has no sign in MLIR: it takes `int32` and `uint32`.
    """
    raw = _RAW.get(name)
    if raw is not None and found.name == raw.ml_dtype:
        return True
    expected = numpy_dtype(name)
    if name[0] == "i" and expected.kind == "i" and found.kind == "u":
        return found.itemsize == expected.itemsize
    return found.newbyteorder("=") == expected


def describe(name: str) -> str:
    """Return the type as a user would make it: `f32 (NumPy float32)`."""
    raw = _RAW.get(name)
    dtype = numpy_dtype(name).name
    if raw is not None:
        return f"{name} (raw bits in {dtype}, or ml_dtypes {raw.ml_dtype})"
    return f"{name} (NumPy {dtype})"


def scalar(name: str, value: Any) -> np.generic:
    """Convert a value to the NumPy scalar for a kernel parameter of this MLIR type.

    For raw formats a Python float is rounded to the format, an integer is taken as its bits.

    Raises:
        LegoError: the value does not fit.
    """
    dtype = numpy_dtype(name)
    raw = _RAW.get(name)
    try:
        if raw is not None and isinstance(value, float | np.floating):
            return dtype.type(int(encode(np.asarray(value), name)))  # type: ignore[no-any-return]
        converted = np.asarray(value)
        kinds = "iub" if dtype.kind in "iu" else "iubf"
        if converted.ndim or converted.dtype.kind not in kinds:
            raise ValueError(value)
        if dtype.kind in "iu" and not _fits(int(value), dtype):
            raise ValueError(value)
        with np.errstate(over="ignore"):
            result: np.generic = dtype.type(value)
    except (TypeError, ValueError, OverflowError):
        raise LegoError(f"{value!r} is no value of type {name}") from None
    return result


def scalar_argument(argument: Argument, value: Any) -> np.generic:
    """Convert a value to the NumPy scalar for an argument.

    Raises:
        LegoError: the value does not fit; names the argument.
    """
    try:
        return scalar(argument.dtype, value)
    except LegoError as e:
        raise LegoError(f"argument '{argument.name}': {e.message}") from None


def _fits(value: int, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def encode(values: npt.NDArray[np.floating[Any]], name: str) -> Array:
    """Round floats to nearest even in a raw format, and return the bits.

    What is too large becomes the largest finite value; NaN stays NaN.
    """
    raw = _RAW[name]
    wide = np.asarray(values, np.float64)
    nan = np.isnan(wide)
    magnitude = np.minimum(np.abs(np.where(nan, 0.0, wide)), _largest_value(name))
    lowest = 1 - raw.bias  # the exponent of subnormals, too
    exponent = np.where(magnitude > 0, np.frexp(magnitude)[1] - 1, lowest)
    exponent = np.maximum(exponent, lowest)
    units = np.rint(np.ldexp(magnitude, raw.mantissa - exponent)).astype(np.int64)
    # For a normal number `units` holds the leading one, which adds one to the exponent field.
    bits = ((exponent.astype(np.int64) - lowest) << raw.mantissa) + units
    bits = np.minimum(bits, _largest(name))
    top = raw.exponent + raw.mantissa
    bits = np.where(nan, (1 << top) - 1, bits) | (np.signbit(wide).astype(np.int64) << top)
    result: Array = bits.astype(numpy_dtype(name))
    return result


def decode(values: Array, name: str) -> npt.NDArray[np.float64]:
    """Return elements of any type as float64: raw formats decoded, others converted."""
    raw = _RAW.get(name)
    if raw is None:
        return np.asarray(values).astype(np.float64)
    bits = np.asarray(values).astype(np.int64)
    mantissa = bits & ((1 << raw.mantissa) - 1)
    exponent = (bits >> raw.mantissa) & ((1 << raw.exponent) - 1)
    negative = (bits >> (raw.exponent + raw.mantissa)) & 1
    normal = exponent > 0
    fraction = (normal + mantissa / (1 << raw.mantissa)).astype(np.float64)
    result = np.ldexp(fraction, np.where(normal, exponent, 1) - raw.bias)
    magnitude = bits & ((1 << (raw.exponent + raw.mantissa)) - 1)
    result[magnitude > _largest(name)] = np.nan
    if name != "f8E4M3FN":  # the one format without infinities
        result[magnitude == _largest(name) + 1] = np.inf
    signed: npt.NDArray[np.float64] = np.where(negative, -result, result)
    return signed


def _largest(name: str) -> int:
    """Return the bits of the largest finite value."""
    raw = _RAW[name]
    top = (1 << (raw.exponent + raw.mantissa)) - 1
    return top - 1 if name == "f8E4M3FN" else top - (1 << raw.mantissa)


def _largest_value(name: str) -> float:
    return float(decode(np.array([_largest(name)]), name)[0])


def poison(shape: tuple[int, ...], name: str) -> Array:
    """Return an array of NaN for floats, of 0xCD bytes for integers: unwritten elements show.

    All bits set is a NaN in every float format here, the raw ones included.
    """
    dtype = numpy_dtype(name)
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    byte = 0xFF if is_float(name) else 0xCD
    return np.full(count, byte, np.uint8).view(dtype).reshape(shape)


def random(shape: tuple[int, ...], name: str, rng: np.random.Generator) -> Array:
    """Return random elements: standard normal for floats, small integers for integers.

    Integers are drawn from -8 to 8 (0 to 8 where unsigned): small enough that sums of products
    stay exact, signed enough that a wrong extension shows.
    """
    dtype = numpy_dtype(name)
    if name in _RAW:
        return encode(rng.standard_normal(shape, dtype=np.float32), name)
    if dtype.kind == "f":
        draw = np.float64 if dtype.itemsize == 8 else np.float32
        return rng.standard_normal(shape, dtype=draw).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    low = 0 if dtype.kind == "u" else -8
    return rng.integers(low, 9, shape).astype(dtype)
