"""Integer arithmetic. Source: PTX ISA 9.7.1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, Array, Type

INT = "u16|u32|u64|s16|s32|s64"
PACKED = "u16x2|s16x2"


def wide(kind: Type) -> Type:
    """The type of twice the size."""
    return TYPES[f"{kind.kind}{2 * kind.bits}"]


@instruction("9.7.1.1", f"add {INT}|{PACKED}")
def add(form: Form) -> Handler:
    """d = a + b, modulo the size."""
    t = form.types[0]
    return form.compute(np.add, [t, t], t)


@instruction("9.7.1.2", f"sub {INT}")
def sub(form: Form) -> Handler:
    """d = a - b, modulo the size."""
    t = form.types[0]
    return form.compute(np.subtract, [t, t], t)


def high_product(a: Array, b: Array) -> Array:
    """The upper half of the product of two arrays of one integer type."""
    if a.dtype.itemsize < 8:
        double = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        product = a.astype(double) * b.astype(double)
        upper: Array = (product >> double.type(8 * a.dtype.itemsize)).astype(a.dtype)
        return upper
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    high: Array = x1 * y1 + (middle >> half) + (((middle & low) + x0 * y1) >> half)
    if a.dtype.kind == "i":
        # As signed numbers x is x - 2**64 where its sign is set, which takes y off the half.
        high -= np.where(a < 0, y, np.uint64(0)) + np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def wide_product(a: Array, b: Array) -> Array:
    """The whole product of two arrays of one integer type of 16 or 32 bits."""
    double = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
    product: Array = a.astype(double) * b.astype(double)
    return product


@instruction("9.7.1.3", f"mul hi|lo {INT}", "mul wide u16|u32|s16|s32")
def mul(form: Form) -> Handler:
    """d = a * b: its lower half, its upper half, or all of it."""
    t = form.types[0]
    match form.one_of("hi", "lo", "wide"):
        case "lo":
            return form.compute(np.multiply, [t, t], t)
        case "hi":
            return form.compute(high_product, [t, t], t)
        case _:
            return form.compute(wide_product, [t, t], wide(t))


@instruction("9.7.1.4", f"mad hi|lo {INT}", "mad wide u16|u32|s16|s32", "mad hi sat s32")
def mad(form: Form) -> Handler:
    """d = a * b + c, with the product as in `mul`."""
    t = form.types[0]
    match form.one_of("hi", "lo", "wide"):
        case "lo":
            return form.compute(lambda a, b, c: a * b + c, [t, t, t], t)
        case "hi" if form.has("sat"):
            return form.compute(
                lambda a, b, c: saturated(high_product(a, b).astype(np.int64) + c), [t, t, t], t
            )
        case "hi":
            return form.compute(lambda a, b, c: high_product(a, b) + c, [t, t, t], t)
        case _:
            return form.compute(lambda a, b, c: wide_product(a, b) + c, [t, t, wide(t)], wide(t))


def saturated(x: Array) -> Array:
    """int64 clamped to int32."""
    return np.clip(x, -(2**31), 2**31 - 1).astype(np.int32)


@instruction("9.7.1.1", "add sat s32")
def add_sat(form: Form) -> Handler:
    """d = a + b, clamped to the range of s32."""
    t = form.types[0]
    return form.compute(lambda a, b: saturated(a.astype(np.int64) + b), [t, t], t)


@instruction("9.7.1.2", "sub sat s32")
def sub_sat(form: Form) -> Handler:
    """d = a - b, clamped to the range of s32."""
    t = form.types[0]
    return form.compute(lambda a, b: saturated(a.astype(np.int64) - b), [t, t], t)


def product24(a: Array, b: Array) -> Array:
    """The 48-bit product of the low 24 bits of two 32-bit arrays, as 64-bit integers."""
    shift = a.dtype.type(8)
    double = np.int64 if a.dtype.kind == "i" else np.uint64
    x, y = (a << shift) >> shift, (b << shift) >> shift
    product: Array = x.astype(double) * y.astype(double)
    return product


def _part24(form: Form) -> tuple[int, np.dtype[np.generic]]:
    return (16 if form.has("hi") else 0), np.dtype(form.types[0].dtype)


@instruction("9.7.1.5", "mul24 hi|lo u32|s32")
def mul24(form: Form) -> Handler:
    """The product of 24-bit numbers: its lower 32 bits, or bits 47 to 16."""
    t = form.types[0]
    shift, dtype = _part24(form)

    def multiply(a: Array, b: Array) -> Array:
        product = product24(a, b)
        value: Array = (product >> product.dtype.type(shift)).astype(dtype)
        return value

    return form.compute(multiply, [t, t], t)


@instruction("9.7.1.6", "mad24 hi|lo u32|s32")
def mad24(form: Form) -> Handler:
    """A product as in `mul24`, plus c."""
    t = form.types[0]
    shift, dtype = _part24(form)

    def multiply(a: Array, b: Array, c: Array) -> Array:
        product = product24(a, b)
        value: Array = (product >> product.dtype.type(shift)).astype(dtype) + c
        return value

    return form.compute(multiply, [t, t, t], t)


@instruction("9.7.1.7", f"sad {INT}")
def sad(form: Form) -> Handler:
    """d = c + |a - b|."""
    t = form.types[0]
    return form.compute(lambda a, b, c: c + np.where(a < b, b - a, a - b), [t, t, t], t)


def quotient(a: Array, b: Array) -> Array:
    """a / b towards zero; by zero all ones, as the hardware does where the ISA leaves it open."""
    zero = b == 0
    divisor = np.where(zero, b.dtype.type(1), b)
    # fmod truncates where // floors, and what it leaves is divided exactly.
    q = (a - np.fmod(a, divisor)) // divisor
    return np.where(zero, np.array(-1).astype(a.dtype), q)


def remainder(a: Array, b: Array) -> Array:
    """a - (a / b) * b; by zero it is a."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


@instruction("9.7.1.8", f"div {INT}")
def div(form: Form) -> Handler:
    """d = a / b, towards zero."""
    t = form.types[0]
    return form.compute(quotient, [t, t], t)


@instruction("9.7.1.9", f"rem {INT}")
def rem(form: Form) -> Handler:
    """d = the remainder of a / b, with the sign of a."""
    t = form.types[0]
    return form.compute(remainder, [t, t], t)


@instruction("9.7.1.10", "abs s16|s32|s64")
def abs_(form: Form) -> Handler:
    """d = |a|; the least number stays."""
    t = form.types[0]
    return form.compute(np.abs, [t], t)


@instruction("9.7.1.11", "neg s16|s32|s64")
def neg(form: Form) -> Handler:
    """d = -a; the least number stays."""
    t = form.types[0]
    return form.compute(np.negative, [t], t)


@instruction("9.7.1.12", f"min {INT}|{PACKED}", "min relu s32|s16x2")
def min_(form: Form) -> Handler:
    """d = the smaller of a and b; with `.relu` at least 0."""
    t = form.types[0]
    if form.has("relu"):
        return form.compute(lambda a, b: np.maximum(np.minimum(a, b), a.dtype.type(0)), [t, t], t)
    return form.compute(np.minimum, [t, t], t)


@instruction("9.7.1.13", f"max {INT}|{PACKED}", "max relu s32|s16x2")
def max_(form: Form) -> Handler:
    """d = the larger of a and b; with `.relu` at least 0."""
    t = form.types[0]
    if form.has("relu"):
        return form.compute(lambda a, b: np.maximum(np.maximum(a, b), a.dtype.type(0)), [t, t], t)
    return form.compute(np.maximum, [t, t], t)


@instruction("9.7.1.23", "dp4a u32|s32 u32|s32")
def dp4a(form: Form) -> Handler:
    """d = c + the dot product of the four bytes of a and of b."""
    return _dot(form, 8, lambda b: b)


@instruction("9.7.1.24", "dp2a lo|hi u32|s32 u32|s32")
def dp2a(form: Form) -> Handler:
    """d = c + the dot product of the two halves of a and two bytes of b, the lower or upper."""
    half = slice(2, 4) if form.has("hi") else slice(0, 2)
    return _dot(form, 16, lambda b: b[:, half])


def _dot(form: Form, bits: int, pick: Callable[[Array], Array]) -> Handler:
    a_type, b_type = form.types
    signed = a_type.is_signed or b_type.is_signed
    result = TYPES["s32" if signed else "u32"]
    a_part = np.dtype(f"{a_type.dtype.kind}{bits // 8}")
    b_part = np.dtype(f"{b_type.dtype.kind}1")

    def dot(a: Array, b: Array, c: Array) -> Array:
        x = a.view(a_part).reshape(-1, 32 // bits).astype(np.int64)
        y = pick(b.view(b_part).reshape(-1, 4)).astype(np.int64)
        value: Array = ((x * y).sum(axis=1) + c.astype(np.int64)).astype(result.dtype)
        return value

    return form.compute(dot, [a_type, b_type, result], result)
