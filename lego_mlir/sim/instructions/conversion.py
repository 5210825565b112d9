"""Conversion between types. Source: PTX ISA 9.7.9.21 (cvt)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.form import Form, Step
from lego_mlir.sim.rounding import (
    canonical,
    directed,
    flush,
    relu,
    round_to,
    saturate,
    to_odd,
    two_sum,
)
from lego_mlir.sim.table import instruction
from lego_mlir.sim.types import TYPES, Array, Type, narrow_bf16

if TYPE_CHECKING:
    from lego_mlir.sim.machine import Wave

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
def integers(form: Form) -> Step:
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
def to_integer(form: Form) -> Step:
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
def from_integer(form: Form) -> Step:
    """Integer to float, rounded once."""
    to, of = form.types
    mode = form.one_of(*_RND.split("|"))
    finish = _finish(form)

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


@instruction("9.7.9.21", f"cvt [{_RND}|{_IRND}] [relu] [ftz] [sat] {_FLT} {_FLT}")
def floats(form: Form) -> Step:
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
    finish = _finish(form)

    def convert(a: Array) -> Array:
        x = flush(a) if ftz else a
        if whole:
            x = _WHOLE[whole](x)
        if to.name == of.name:
            return finish(x)
        return finish(round_to(x.astype(np.float64), to, mode))

    return form.compute(convert, [of], to)


def _finish(form: Form) -> Callable[[Array], Array]:
    """The clamps and the NaN of a float result."""
    to = form.types[0]
    steps: list[Callable[[Array], Array]] = []
    if form.has("ftz") and to.name == "f32":
        steps.append(flush)
    if form.has("sat"):
        steps.append(saturate)
    if form.has("relu"):
        steps.append(relu)
    if to.kind != "bf":
        steps.append(canonical)

    def apply(x: Array) -> Array:
        for step in steps:
            x = step(x)
        return x

    return apply


@instruction("9.7.9.21", "cvt rn|rz [relu] f16x2|bf16x2 f32")
def pack(form: Form) -> Step:
    """Two f32 to a packed pair: a becomes the upper half, b the lower."""
    form.expect(3)
    to, of = form.types
    element, mode = to.element, form.one_of("rn", "rz")
    finish = relu if form.has("relu") else lambda x: x
    write = form.write(form.operands[0], TYPES["b32"])
    a, b = form.read(form.operands[1], of), form.read(form.operands[2], of)

    def half(x: Array) -> Array:
        return _half_bits(finish(round_to(x.astype(np.float64), element, mode)), element)

    def step(w: Wave) -> None:
        write(w, half(a(w)) << np.uint32(16) | half(b(w)))

    return step


def _half_bits(x: Array, element: Type) -> Array:
    """Values of a half type as their bits in the low half of a word."""
    bits = narrow_bf16(x) if element.kind == "bf" else canonical(x).view(np.uint16)
    return bits.astype(np.uint32)


@instruction("9.7.9.21", "cvt rna tf32 f32")
def tf32(form: Form) -> Step:
    """f32 to tf32, which keeps 10 bits of the fraction; ties away from zero.

    The low bits of the result are zero.
    """
    word = TYPES["b32"]

    def convert(a: Array) -> Array:
        rounded = (a + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        special = (a & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
        nan = special & ((a & np.uint32(0x7FFFFF)) != 0)
        return np.where(nan, np.uint32(0x7FFFFFFF), np.where(special, a, rounded))

    return form.compute(convert, [word], word)
