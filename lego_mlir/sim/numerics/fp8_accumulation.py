"""The accumulation of 8-bit float products by Hopper's `wgmma`: few bits, truncated.

All terms of a sum, the products and the accumulator, are aligned to the largest exponent among them
and truncated 13 bits below it. Their sum is exact from there on. An f32 result keeps 13 bits of its
fraction. Nothing is rounded to nearest, so errors accumulate: a long sum of positive terms stops
growing when it is about 2¹³ times as large as a term.

This matches an H200 bit for bit for random operands of both formats (the recorded programs
`wgmma_e4m3`, `wgmma_e5m2_e4m3`). `mma` of the same formats keeps more, there and here.

Source: P. Xie et al., MMA-Sim: bit-accurate reference model of tensor cores and matrix cores, 2025.
"""

from __future__ import annotations

import numpy as np

from lego_mlir.sim.numerics.rounding import canonical
from lego_mlir.sim.ptx.types import Array

_FRACTION = 13
"""Bits below the largest exponent that count."""

FORMATS = {"e4m3": -6, "e5m2": -14}
"""The exponent of the subnormal numbers of each format, as PTX names it."""

_NOTHING = -(1 << 14)
"""The exponent of a zero."""


def multiply_accumulate(a: Array, b: Array, c: Array, formats: tuple[str, str]) -> Array:
    """Return a·b + c in c's type.

    Args:
        a: (…, m, k), values of 8-bit floats, or their negatives.
        b: (…, k, n), the same.
        c: (…, m, n), values of the accumulator: f32 or f16.
        formats: of a and of b, as PTX names them.
    """
    a_exponents, b_exponents = (
        _exponent(x, FORMATS[name]) for x, name in zip((a, b), formats, strict=True)
    )
    depth = a.shape[-1]
    wide = c.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        top = _exponent(wide, -126 if c.dtype == np.float32 else -14)
        for k in range(depth):
            np.maximum(top, a_exponents[..., k, None] + b_exponents[..., k, None, :], out=top)
        unit = np.maximum(top, -(1 << 10)) - _FRACTION
        total = np.trunc(np.ldexp(wide, -unit))
        x, y = a.astype(np.float64), b.astype(np.float64)
        for k in range(depth):
            total += np.trunc(np.ldexp(x[..., k, None] * y[..., k, None, :], -unit))
        total = np.ldexp(total, unit)
        return canonical(_cut(total) if c.dtype == np.float32 else total.astype(c.dtype))


def _exponent(x: Array, least: int) -> Array:
    """Return the exponents of numbers, as integers."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    found: Array = np.where(fraction == 0, _NOTHING, np.maximum(exponent - 1, least))
    return found


def _cut(total: Array) -> Array:
    """Truncate to an f32 with few bits of fraction."""
    fraction, exponent = np.frexp(total)
    kept: Array = np.ldexp(np.trunc(np.ldexp(fraction, _FRACTION + 1)), exponent - _FRACTION - 1)
    return kept.astype(np.float32)
