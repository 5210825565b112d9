"""Floating-point arithmetic as PTX defines it, where NumPy's own differs.

The tool for a single rounding is *round to odd* (S. Boldo, G. Melquiond, Emulation of FMA and
correctly rounded sums: proved algorithms using rounding to odd, 2008): an exact result is first
kept in float64 with the last bit set wherever something was lost; rounding that to a format at
least two bits shorter then gives what one rounding of the exact result would.

Source: PTX ISA 9.7.3 (rounding modifiers, subnormals, NaN), 9.7.4.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from lego_mlir.sim.ptx.types import Array, Type, narrow_bf16, widen_bf16

_CANONICAL = {2: (np.uint16, 0x7FFF), 4: (np.uint32, 0x7FFFFFFF)}


def canonical(x: Array) -> Array:
    """Replace every NaN by the canonical one of f16 and f32 instructions."""
    lost = np.isnan(x)
    if x.dtype.itemsize == 8 or not lost.any():
        return x
    word, nan = _CANONICAL[x.dtype.itemsize]
    return np.where(lost, np.array(nan, word).view(x.dtype), x)


def flush(x: Array) -> Array:
    """Replace subnormal numbers by zeros of their sign (`.ftz`)."""
    small = np.abs(x) < np.finfo(x.dtype).tiny
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if small.any() else x


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; a NaN becomes 0 (`.sat`)."""
    value: Array = np.where(np.isnan(x), x.dtype.type(0), np.clip(x, 0, 1)) + x.dtype.type(0)
    return value


def relu(x: Array) -> Array:
    """Replace negative numbers by 0; a NaN stays one (`.relu`)."""
    return np.where(x <= 0, x.dtype.type(0), x)


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x + y as a rounded sum and its exact error (Knuth)."""
    s = x + y
    z = s - x
    return s, (x - (s - z)) + (y - z)


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x * y of float64 as a rounded product and its exact error, without overflow.

    Dekker's product, with Veltkamp's splitting.
    """
    p = x * y
    x1, x0 = _halves(x)
    y1, y0 = _halves(y)
    return p, x0 * y0 - (((p - x1 * y1) - x0 * y1) - x1 * y0)


def _halves(x: Array) -> tuple[Array, Array]:
    c = 134217729.0 * x
    high = c - (c - x)
    return high, x - high


def to_odd(rounded: Array, error: Array) -> Array:
    """Return the float64 `rounded + error`, rounded to odd.

    Where something is lost and the last bit of the rounded value is even, that is the neighbour
    in the direction of the error.
    """
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(rounded)
    if not inexact.any():
        return rounded
    word = rounded.view(np.int64)
    away = np.where((error > 0) == (rounded > 0), np.int64(1), np.int64(-1))
    change = np.where(inexact & (word & 1 == 0), away, np.int64(0))
    return (word + change).view(np.float64)


def directed(rounded: Array, above: Array, below: Array, mode: str) -> Array:
    """Turn a result rounded to nearest into one rounded as `mode` says.

    Args:
        rounded: to nearest.
        above: where the rounded value lies above the exact one.
        below: where it lies below.
        mode: `rn`, `rz`, `rm` or `rp`.
    """
    if mode in ("rn", ""):
        return rounded
    positive = ~np.signbit(rounded)
    match mode:
        case "rz":
            down, up = above & positive, below & ~positive
        case "rm":
            down, up = above, np.zeros_like(above)
        case _:
            down, up = np.zeros_like(below), below
    word = rounded.view(f"i{rounded.dtype.itemsize}")
    step = np.where(down, -1, 0) + np.where(up, 1, 0)
    # Bits of floats are sign and magnitude: upwards is one more for positive numbers.
    moved = word + np.where(positive, step, -step).astype(word.dtype)
    value: Array = moved.view(rounded.dtype)
    return value


def round_to(x: Array, kind: Type, mode: str = "rn") -> Array:
    """Round float64 to the values of a float type, once.

    Args:
        x: exact, or rounded to odd.
        kind: the type to round to.
        mode: `rn`, `rz`, `rm` or `rp`.
    """
    if kind.bits == 64:
        return x
    if kind.kind == "bf":
        single = x.astype(np.float32)
        back = single.astype(np.float64)
        odd = (back != x) & np.isfinite(single) & (single.view(np.uint32) & 1 == 0)
        away = np.where((x > back) == (x > 0), 1, -1)
        word = single.view(np.int32) + np.where(odd, away, 0).astype(np.int32)
        half = narrow_bf16(word.view(np.float32))
        if mode in ("rn", ""):
            return widen_bf16(half)
        value = widen_bf16(half).astype(np.float64)
        # bf16 steps like the upper half of a float32: move it as an f16 of the same bits.
        as_half = half.view(np.float16)
        return widen_bf16(directed(as_half, value > x, value < x, mode).view(np.uint16))
    rounded = x.astype(kind.dtype)
    if mode in ("rn", ""):
        return rounded
    value = rounded.astype(np.float64)
    return directed(rounded, value > x, value < x, mode)


def fused(a: Array, b: Array, c: Array, kind: Type, mode: str = "rn") -> Array:
    """Return a * b + c of a float type, rounded once."""
    if kind.bits == 64:
        return _fused64(a, b, c)
    # The product of two short floats is exact in float64.
    product = a.astype(np.float64) * b.astype(np.float64)
    return round_to(to_odd(*two_sum(product, c.astype(np.float64))), kind, mode)


def added(a: Array, b: Array, kind: Type, mode: str) -> Array:
    """Return a + b of a float type shorter than f64, rounded once as `mode` says."""
    total = two_sum(a.astype(np.float64), b.astype(np.float64))
    return _zero_sign(round_to(to_odd(*total), kind, mode), a, b, mode)


def _zero_sign(x: Array, a: Array, b: Array, mode: str) -> Array:
    """Set the sign of exact cancellation: +0, but -0 if rounding is downwards."""
    if mode != "rm":
        return x
    cancelled = (x == 0) & (np.signbit(a) != np.signbit(b))
    return np.where(cancelled, -x.dtype.type(0), x)


def multiplied(a: Array, b: Array, kind: Type, mode: str) -> Array:
    """Return a * b of a float type shorter than f64, rounded once as `mode` says."""
    return round_to(a.astype(np.float64) * b.astype(np.float64), kind, mode)


def _fused64(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of float64, rounded once.

    The error of the product is added to c, and what that loses is kept by rounding to odd. Lanes
    near over- or underflow are computed with fractions instead.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    t, t_error = two_sum(c, low)
    v, v_error = two_sum(high, t)
    result = v + to_odd(*two_sum(t_error, v_error))
    size = np.abs(a) * np.abs(b)
    safe = (size > 2.0**-900) & (size < 2.0**900) & (np.abs(a) < 2.0**900)
    safe &= (np.abs(b) < 2.0**900) & ((c == 0) | ((np.abs(c) > 2.0**-900) & (np.abs(c) < 2.0**900)))
    if safe.all():
        return result
    plain = a * b + c
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
    result = np.where(safe, result, plain)
    for lane in np.flatnonzero(finite & ~safe):
        result[lane] = _exact(*(float(x[lane]) for x in (a, b, c)))
    return result


def _exact(a: float, b: float, c: float) -> float:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")


def least(a: Array, b: Array, propagate: bool) -> Array:
    """Return the smaller; -0 < +0. The result is NaN if both are, or either if `propagate`."""
    smaller = (np.minimum if propagate else np.fmin)(a, b)
    return np.where(a == b, np.where(np.signbit(a), a, b), smaller)


def greatest(a: Array, b: Array, propagate: bool) -> Array:
    """Return the larger; +0 > -0. The result is NaN if both are, or either if `propagate`."""
    larger = (np.maximum if propagate else np.fmax)(a, b)
    return np.where(a == b, np.where(np.signbit(a), b, a), larger)


def through_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function of a float array, computed in float64 and rounded back."""

    def apply(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(x.dtype)

    return apply
