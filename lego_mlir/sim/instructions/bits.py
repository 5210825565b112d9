"""Counting, finding and moving bits. Source: PTX ISA 9.7.1.14–9.7.1.22."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


def highest_bit(a: Array) -> Array:
    """The position of the highest set bit of unsigned integers, -1 where there is none."""
    position = np.full(a.shape, -1, np.int64)
    shift = a.itemsize * 4
    rest = a
    found = np.zeros(a.shape, np.int64)
    while shift:
        above = rest >> a.dtype.type(shift)
        has = above != 0
        found += np.where(has, shift, 0)
        rest = np.where(has, above, rest)
        shift //= 2
    return np.where(a != 0, found, position)


def reversed_bits(a: Array) -> Array:
    """The bits in reverse order."""
    octets = np.ascontiguousarray(a).view(np.uint8).reshape(-1, a.itemsize)
    flipped = np.packbits(np.unpackbits(octets, axis=1)[:, ::-1], axis=1)
    return np.ascontiguousarray(flipped).view(a.dtype).reshape(-1)


def mask_of(length: Array, dtype: np.dtype[np.generic]) -> Array:
    """`length` ones; all of them from the size on. The lengths are uint32."""
    bits = dtype.itemsize * 8
    one = np.ones(1, dtype)
    short = np.minimum(length, np.uint32(bits - 1)).astype(dtype)
    return np.where(length >= np.uint32(bits), ~(one & 0), (one << short) - one)


@instruction("9.7.1.14", "popc b32|b64")
def popc(form: Form) -> Handler:
    """The number of set bits."""
    return form.compute(lambda a: np.bitwise_count(a).astype(np.uint32), form.types[:1], U32)


@instruction("9.7.1.15", "clz b32|b64")
def clz(form: Form) -> Handler:
    """The number of zeros above the highest set bit."""
    top = form.types[0].bits - 1
    return form.compute(lambda a: (top - highest_bit(a)).astype(np.uint32), form.types[:1], U32)


@instruction("9.7.1.16", "bfind [shiftamt] u32|u64|s32|s64")
def bfind(form: Form) -> Handler:
    """The position of the highest bit that differs from the sign, or how far it is from the top.

    All ones where there is none.
    """
    kind = form.types[0]
    top = kind.bits - 1

    def find(a: Array) -> Array:
        unsigned = np.where(a < 0, ~a, a).view(kind.storage)
        position = highest_bit(unsigned)
        if form.has("shiftamt"):
            position = np.where(position < 0, -1, top - position)
        return position.astype(np.uint32)

    return form.compute(find, [kind], U32)


@instruction("9.7.1.18", "brev b32|b64")
def brev(form: Form) -> Handler:
    """The bits in reverse order."""
    return form.compute(reversed_bits, form.types[:1], form.types[0])


@instruction("9.7.1.19", "bfe u32|u64|s32|s64")
def bfe(form: Form) -> Handler:
    """The field of c bits of a from bit b on.

    Extended with zeros or, for signed types, with its highest bit; where the field passes the
    top, that is the sign of a.
    """
    kind = form.types[0]
    bits, top = kind.bits, np.uint32(kind.bits - 1)

    def extract(a: Array, b: Array, c: Array) -> Array:
        position, length = b & np.uint32(255), c & np.uint32(255)
        unsigned = a.view(kind.storage)
        start = np.minimum(position, top).astype(kind.storage)
        field = np.where(position > top, unsigned & 0, unsigned >> start)
        mask = mask_of(length, kind.storage)
        if not kind.is_signed:
            return field & mask
        last = np.minimum(position + length - np.uint32(1), top).astype(kind.storage)
        sign = (unsigned >> last & unsigned.dtype.type(1)) != 0
        sign &= length != 0
        filled = np.where(sign, field | ~mask, field & mask)
        # Past the top of a there is nothing but its sign.
        room = mask_of(
            np.where(position > top, np.uint32(0), np.uint32(bits) - position), kind.storage
        )
        return np.where(sign, filled | ~room, filled).view(kind.dtype)

    return form.compute(extract, [kind, U32, U32], kind)


@instruction("9.7.1.20", "bfi b32|b64")
def bfi(form: Form) -> Handler:
    """b with the field of d bits from bit c on replaced by the low bits of a."""
    kind = form.types[0]
    top = np.uint32(kind.bits - 1)

    def insert(a: Array, b: Array, c: Array, d: Array) -> Array:
        position, length = c & np.uint32(255), d & np.uint32(255)
        start = np.minimum(position, top).astype(kind.storage)
        mask = np.where(position > top, a & 0, mask_of(length, kind.storage) << start)
        value: Array = (a << start & mask) | (b & ~mask)
        return value

    return form.compute(insert, [kind, kind, U32, U32], kind)


@instruction("9.7.1.21", "szext clamp|wrap u32|s32")
def szext(form: Form) -> Handler:
    """The low b bits of a, extended with zeros or with their sign."""
    kind = form.types[0]
    wrap = form.has("wrap")

    def extend(a: Array, b: Array) -> Array:
        length = b & np.uint32(31) if wrap else np.minimum(b, np.uint32(32))
        mask = mask_of(length, kind.storage)
        low = a.view(np.uint32) & mask
        if not kind.is_signed:
            return low
        last = np.maximum(length, np.uint32(1)) - np.uint32(1)
        sign = ((low >> last) & np.uint32(1) != 0) & (length != 0)
        return np.where(sign, low | ~mask, low).view(np.int32)

    return form.compute(extend, [kind, U32], kind)


@instruction("9.7.1.22", "bmsk clamp|wrap b32")
def bmsk(form: Form) -> Handler:
    """b ones from bit a on."""
    wrap = form.has("wrap")

    def mask(a: Array, b: Array) -> Array:
        if wrap:
            value: Array = mask_of(b & np.uint32(31), np.dtype(np.uint32)) << (a & np.uint32(31))
            return value
        start = np.minimum(a, np.uint32(31))
        return np.where(a >= np.uint32(32), np.uint32(0), mask_of(b, np.dtype(np.uint32)) << start)

    return form.compute(mask, [TYPES["b32"], U32], TYPES["b32"])


@instruction("9.7.1.17", "fns b32")
def fns(form: Form) -> Handler:
    """The position of the n-th set bit of a mask from a base on, up or (n < 0) down.

    With n = 0 the base itself, if its bit is set. All ones where there is none.
    """
    form.expect(4)
    read = form.read(form.operands[1], U32)
    base, offset = form.read(form.operands[2], U32), form.read(form.operands[3], TYPES["s32"])
    write = form.write(form.operands[0], U32)

    def execute(w: Wave) -> None:
        mask, start, n = np.broadcast_arrays(read(w), base(w).astype(np.int64), offset(w))
        bits = mask[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1) != 0
        at = np.arange(32)
        up, down = bits & (at >= start[:, None]), bits & (at <= start[:, None])
        rank = np.where(n[:, None] < 0, down[:, ::-1].cumsum(1)[:, ::-1], up.cumsum(1))
        wanted = np.maximum(np.abs(n.astype(np.int64)), 1)
        among = np.where(n[:, None] < 0, down, np.where(n[:, None] == 0, up & down, up))
        hits = among & (rank == wanted[:, None])
        found = np.where(hits.any(1), hits.argmax(1), -1)
        write(w, found.astype(np.uint32))

    return execute
