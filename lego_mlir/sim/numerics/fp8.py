"""The 8-bit floats e4m3 and e5m2.

e4m3 has a sign, 4 bits of exponent and 3 of fraction; it has no infinity, its one NaN is all ones
below the sign, and its largest number is 448. e5m2 is the upper half of an f16, infinities and
NaNs included; its largest number is 57344.

Source: PTX ISA 5.2.3 (alternate floating-point formats), 9.7.9.21 (cvt).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Format = Literal["e4m3", "e5m2"]

NAN = 0x7F
"""The NaN that conversions give, in both formats."""


def _all_values(exponent: int, fraction: int) -> Array:
    """Return the float32 value of each byte by the rule of IEEE 754, without special numbers."""
    code = np.arange(256)
    bias = (1 << exponent - 1) - 1
    power = code >> fraction & (1 << exponent) - 1
    digits = code & (1 << fraction) - 1 | (power != 0) << fraction
    size = np.ldexp(digits.astype(np.float32), np.maximum(power, 1) - bias - fraction)
    value: Array = np.where(code < 128, size, -size)
    return value


def _e4m3() -> Array:
    value = _all_values(4, 3)
    value[[0x7F, 0xFF]] = np.nan
    return value


def _e5m2() -> Array:
    value = _all_values(5, 2)
    value[[0x7C, 0xFC]] = np.inf, -np.inf
    value[0x7D:0x80] = value[0xFD:] = np.nan
    return value


VALUES: dict[Format, Array] = {"e4m3": _e4m3(), "e5m2": _e5m2()}
"""The value of each byte, as float32."""


def _ties(form: Format) -> Array:
    """Return the numbers halfway between adjacent finite magnitudes."""
    magnitude = VALUES[form][:128]
    finite = magnitude[np.isfinite(magnitude)].astype(np.float64)
    return (finite[1:] + finite[:-1]) / 2


_TIES: dict[Format, Array] = {"e4m3": _ties("e4m3"), "e5m2": _ties("e5m2")}


def widen(code: Array, form: Format) -> Array:
    """Convert bytes to float32, exactly."""
    value: Array = VALUES[form][code]
    return value


def narrow(x: Array, form: Format) -> Array:
    """Convert numbers to bytes, rounded to nearest even and clamped to the largest number.

    Magnitudes grow with their codes, so the code is the number of ties below; a tie itself goes
    to the even code.
    """
    size, ties = np.abs(x.astype(np.float64)), _TIES[form]
    low, high = np.searchsorted(ties, size, "left"), np.searchsorted(ties, size, "right")
    code = np.where(low & 1, high, low) | np.where(np.signbit(x), 0x80, 0)
    return np.where(np.isnan(x), NAN, code).astype(np.uint8)
