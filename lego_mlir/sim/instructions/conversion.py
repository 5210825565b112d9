"""Conversion between types. Source: PTX ISA 9.7.9.21 (cvt)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lego_mlir.sim.numerics.rounding import (
    canonical,
    directed,
    flush,
    relu,
    round_to,
    saturate,
    to_odd,
    two_sum,
)
from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, Array, Type

_INT = "u8|u16|u32|u64|s8|s16|s32|s64"
_FLT = "f16|bf16|f32|f64"
_RND = "rn|rz|rm|rp"
_WHOLE: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_IRND = "|".join(_WHOLE)


@instruction("9.7.9.21", f"cvt [sat] {_INT} {_INT}")
def integers(form: Form) -> Handler:
    """Integer to integer: truncated or extended; with `.sat` clamped."""
    to, of = form.types
    if not form.has("sat"):
        return form.compute(lambda a: a.astype(to.dtype), [of], to, wider=True)
    info, source = np.iinfo(to.dtype), np.iinfo(of.dtype)
    if info.min <= source.min and source.max <= info.max:
        form.fail("the modifier .sat, though nothing can be out of range,")

    def clamp(a: Array) -> Array:
        # Limits that the source cannot reach would not fit its dtype.
        least, most = max(info.min, source.min), min(info.max, source.max)
        return np.clip(a, a.dtype.type(least), a.dtype.type(most)).astype(to.dtype)

    return form.compute(clamp, [of], to, wider=True)


@instruction("9.7.9.21", f"cvt {_IRND} [ftz] [sat] {_INT} {_FLT}")
def to_integer(form: Form) -> Handler:
    """Float to integer: rounded to a whole number and clamped to the range.

    A NaN gives 0, but where the source is f64 or the result has 64 bits, the number with only its
    top bit set.
    """
    to, of = form.types
    whole = _WHOLE[form.one_of(*_WHOLE)]
    ftz = form.has("ftz")
    info = np.iinfo(to.dtype)
    lost = 1 << to.bits - 1 if 64 in (to.bits, of.bits) else 0
    nan = np.array([lost], to.storage).view(to.dtype)
    # 2**bits - 1 is no float64 for 64 bits; the first value too large is.
    above = float(int(info.max) + 1)

    def convert(a: Array) -> Array:
        x = whole((flush(a) if ftz else a).astype(np.float64))
        inside = (x > float(info.min)) & (x < above)
        value = np.where(inside, x, 0.0).astype(to.dtype)
        value = np.where(x >= above, info.max, value)
        value = np.where(x <= float(info.min), info.min, value)
        return np.where(np.isnan(x), nan, value).astype(to.dtype, copy=False)

    return form.compute(convert, [of], to, wider=True)


@instruction("9.7.9.21", f"cvt {_RND} [sat] {_FLT} {_INT}")
def from_integer(form: Form) -> Handler:
    """Integer to float, rounded once."""
    to, of = form.types
    mode = form.one_of(*_RND.split("|"))
    finish = _finish(form, to)

    def convert(a: Array) -> Array:
        if of.bits < 64:
            return finish(round_to(a.astype(np.float64), to, mode))
        half = a.dtype.type(32)
        high = (a >> half).astype(np.float64) * 2.0**32
        low = (a.view(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.float64)
        rounded, error = two_sum(high, low)
        if to.bits == 64:
            return finish(directed(rounded, error < 0, error > 0, mode))
        return finish(round_to(to_odd(rounded, error), to, mode))

    return form.compute(convert, [of], to, wider=True)


@instruction(
    "9.7.9.21",
    f"cvt [{_RND}|{_IRND}] [relu] [ftz] [sat] {_FLT} {_FLT}",
    "cvt rn|rz [relu] satfinite f16|bf16 f32",
)
def floats(form: Form) -> Handler:
    """Float to float.

    Narrowing needs a rounding mode, widening is exact, and between equal types `.rni` and its
    like round to a whole number.
    """
    to, of = form.types
    mode, whole = form.one_of(*_RND.split("|")), form.one_of(*_WHOLE)
    narrowing = to.bits < of.bits or (to.bits == of.bits and to.name != of.name)
    if narrowing and not mode:
        form.fail("no rounding mode where one should stand")
    if not narrowing and mode:
        form.fail(f"the rounding mode .{mode} where nothing is rounded")
    if whole and to.name != of.name:
        form.fail(f"the rounding mode .{whole} between types of different formats")
    ftz = form.has("ftz") and of.bits == 32
    finish = _finish(form, to)

    def convert(a: Array) -> Array:
        x = flush(a) if ftz else a
        if whole:
            x = _WHOLE[whole](x)
        if to.name == of.name:
            return finish(x)
        return finish(round_to(x.astype(np.float64), to, mode))

    return form.compute(convert, [of], to)


def _finish(form: Form, to: Type) -> Callable[[Array], Array]:
    """The clamps and the NaN of a float result."""
    steps: list[Callable[[Array], Array]] = []
    if form.has("ftz") and to.name == "f32":
        steps.append(flush)
    if form.has("sat"):
        steps.append(saturate)
    if form.has("relu"):
        steps.append(relu)
    if form.has("satfinite"):
        steps.append(_largest(to))
    if to.kind != "bf":
        steps.append(canonical)

    def apply(x: Array) -> Array:
        for step in steps:
            x = step(x)
        return x

    return apply


_LARGEST = {"f16": 65504.0, "bf16": float.fromhex("0x1.fep127")}


def _largest(kind: Type) -> Callable[[Array], Array]:
    """Numbers beyond the largest replaced by it, with their sign (`.satfinite`)."""
    most = kind.dtype.type(_LARGEST[kind.name])
    return lambda x: np.clip(x, -most, most)


@instruction("9.7.9.21", "cvt rn|rz [relu] [satfinite] f16x2|bf16x2 f32")
def pack(form: Form) -> Handler:
    """Two f32 to a packed pair: a becomes the upper half, b the lower."""
    to, of = form.types
    element, mode = to.element, form.one_of("rn", "rz")
    finish = _finish(form, element)

    def pair(a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        both = np.stack([b, a], axis=-1).astype(np.float64)
        return finish(round_to(both, element, mode))

    return form.compute(pair, [of, of], to)


@instruction(
    "9.7.9.21",
    "cvt rn satfinite [relu] e4m3x2|e5m2x2 f32",
    "cvt rn satfinite [relu] e4m3x2|e5m2x2 f16x2",
)
def to_fp8(form: Form) -> Handler:
    """Two numbers to a packed pair of 8-bit floats: of two operands a becomes the upper byte.

    What is too large becomes the largest number, infinities too.
    """
    to, of = form.types
    finish = relu if form.has("relu") else lambda x: x
    if of.lanes == 2:
        return form.compute(finish, [of], to)

    def pair(a: Array, b: Array) -> Array:
        return finish(np.stack(np.broadcast_arrays(b, a), axis=-1))

    return form.compute(pair, [of, of], to)


@instruction("9.7.9.21", "cvt rn [relu] f16x2 e4m3x2|e5m2x2")
def from_fp8(form: Form) -> Handler:
    """A packed pair of 8-bit floats to f16, exactly."""
    to, of = form.types
    finish = _finish(form, to)
    return form.compute(lambda a: finish(a.astype(np.float16)), [of], to)


@instruction("9.7.9.21", "cvt rna [satfinite] tf32 f32", "cvt rn|rz [relu] tf32 f32")
def tf32(form: Form) -> Handler:
    """f32 to tf32, which keeps 10 bits of the fraction; `.rna` rounds ties away from zero.

    The low bits of the result are zero. A NaN becomes one with all other bits set; by `.rna` it
    keeps its upper bits, so that a NaN without any turns infinite, as on an H200.
    """
    word = TYPES["b32"]
    mode = form.one_of("rna", "rn", "rz")
    infinity, kept, last = np.uint32(0x7F800000), np.uint32(0x7FFFE000), np.uint32(0x2000)

    def convert(a: Array) -> Array:
        sign, size = a & np.uint32(1 << 31), a & np.uint32(0x7FFFFFFF)
        raised = size
        if mode == "rna":
            raised = size + np.uint32(0x1000)
        elif mode == "rn":
            raised = size + np.uint32(0xFFF) + (size >> np.uint32(13) & np.uint32(1))
        rounded = np.where(size < infinity, raised, size) & kept
        if form.has("satfinite"):
            rounded = np.where(rounded < infinity, rounded, rounded - last)
        if form.has("relu"):
            rounded = np.where(sign, np.uint32(0), rounded)
            sign = np.zeros_like(sign)
        result = sign | rounded
        return result if mode == "rna" else np.where(size > infinity, kept, result)

    return form.compute(convert, [word], word)
