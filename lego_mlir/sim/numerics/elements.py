"""Matrix elements: how they are packed in words, and how their products are accumulated.

A matrix instruction multiplies small matrices whose elements are f16, bf16, tf32, 8-bit floats,
integers of 8 or 4 bits, single bits or f64. All of them are exact in float64, and so is the
product of any two except f64.

The ISA does not specify the order, the intermediate precision or the rounding of the sum; it only
requires at least single precision for f32 accumulators. (Tensor cores are known to align the
products to the largest exponent, to truncate what lies below, and to round towards zero.) Here
products are summed in float64, the accumulator is added, and the total is rounded once, to nearest
even, as an ideal tensor core would. Integers are exact on both.

On random matrices, an H200 returned the same for f16 accumulators except for ties, and differed for
f32 by up to two units in the last place of the largest term. For wgmma on 8-bit floats see
`fp8_accumulation`.

Source: PTX ISA 9.7.14.2 (data types), 9.7.14.5.14 (mma), 9.7.15.5.2 (wgmma.mma_async).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lego_mlir.sim.numerics import fp8
from lego_mlir.sim.numerics.rounding import canonical
from lego_mlir.sim.ptx.types import TYPES, Array, Type, widen_bf16


@dataclass(frozen=True, slots=True)
class Element:
    """The type of a matrix's elements.

    Attributes:
        name: as PTX writes it.
        bits: of one element.
        register: type of the register that holds one or several of them.
        unpack: from an array of register values, C-contiguous, to one whose last axis is as many
            times longer as a register holds elements; lowest bits first.
    """

    name: str
    bits: int
    register: Type
    unpack: Callable[[Array], Array]

    @property
    def packed(self) -> int:
        """Elements in one register."""
        return self.register.bits // self.bits


def _nibbles(words: Array) -> Array:
    octets = words.view(np.uint8)
    both = np.stack([octets & 15, octets >> 4], axis=-1)
    return both.reshape(*octets.shape[:-1], -1)


def _signed_nibbles(words: Array) -> Array:
    return (_nibbles(words).astype(np.int8) ^ 8) - 8


def _bits(words: Array) -> Array:
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")


def _tf32(words: Array) -> Array:
    """Return tf32 values; the low 13 bits are ignored."""
    return (words & np.uint32(0xFFFFE000)).view(np.float32)


_B32 = TYPES["b32"]

ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in [
        Element("f16", 16, _B32, lambda w: w.view(np.float16)),
        Element("bf16", 16, _B32, lambda w: widen_bf16(w.view(np.uint16))),
        Element("tf32", 32, _B32, _tf32),
        Element("e4m3", 8, _B32, lambda w: fp8.widen(w.view(np.uint8), "e4m3")),
        Element("e5m2", 8, _B32, lambda w: fp8.widen(w.view(np.uint8), "e5m2")),
        Element("s8", 8, _B32, lambda w: w.view(np.int8)),
        Element("u8", 8, _B32, lambda w: w.view(np.uint8)),
        Element("s4", 4, _B32, _signed_nibbles),
        Element("u4", 4, _B32, _nibbles),
        Element("b1", 1, _B32, _bits),
        Element("f32", 32, TYPES["f32"], lambda x: x),
        Element("s32", 32, TYPES["s32"], lambda x: x),
        Element("f64", 64, TYPES["f64"], lambda x: x),
    ]
}
"""Name → element type, of multiplicands and accumulators."""


def pack(values: Array, element: Element) -> Array:
    """Return the values of an accumulator as register values, the inverse of `unpack`."""
    if element.name != "f16":
        return values
    words: Array = np.ascontiguousarray(values).view(np.uint32)
    return words


def multiplied(a: Array, b: Array) -> Array:
    """Return the matrix product of (…, m, k) and (…, k, n) in float64."""
    product: Array = a.astype(np.float64) @ b.astype(np.float64)
    return product


def accumulated(product: Array, c: Array, element: Element, saturate: bool = False) -> Array:
    """Return product + c as values of the accumulator's type.

    Args:
        product: exact (integers) or in float64.
        c: values of the accumulator.
        element: its type: f16, f32, f64 or s32.
        saturate: clamp an s32 to its range; else it wraps.
    """
    if element.name != "s32":
        dtype = np.float16 if element.name == "f16" else element.register.dtype
        return canonical((product + c).astype(dtype))
    total = product.astype(np.int64) + c
    if saturate:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total.astype(np.int32)
