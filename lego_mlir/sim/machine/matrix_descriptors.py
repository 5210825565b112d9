"""Matrix descriptors: 64 bits that encode the shared-memory layout of a `wgmma` operand.

    bits 0–13   start address / 16         bits 49–51  base offset
    bits 16–29  leading byte offset / 16   bits 62–63  swizzle: 0 none, 1 128, 2 64, 3 32 bytes
    bits 32–45  stride byte offset / 16    all others  0

An operand is a matrix of `extent` rows (m of A, n of B) and 32 bytes along k. It is made of core
matrices of 8 rows of 16 bytes, its *chunks*. Let S be the swizzle in bytes, 16 if there is
none. Along its major direction, in which elements are contiguous, an operand has runs of S bytes;
8 such runs follow each other, S bytes apart:

    K-major    chunk c of row r:               (r%8)·S + (r/8)·stride + c·16
                                               with no swizzle c·leading instead of c·16
    MN-major   chunk c of k (8 rows from 8·c): (k%8)·S + (k/8)·stride + (c%(S/16))·16
                                               + (c/(S/16))·leading
                                               with no swizzle (k/8)·leading + c·stride

A swizzle permutes the chunks of a run by the run's number: log2(S/16) address bits from bit 4 on
are combined by exclusive or with those from bit 7 on. The pattern depends on addresses, not on the
operand: it repeats every 8·S bytes. If it does not start at such a multiple, the base offset says
where (in 128 bytes).

Source: PTX ISA 9.7.15.5.1 (shared memory layouts, strides, matrix descriptor).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lego_mlir.sim.ptx.types import Array

_SWIZZLE = (0, 128, 64, 32)
_RESERVED = ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 7 << 49 | 3 << 62) & (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A matrix descriptor; offsets in bytes.

    Attributes:
        start, leading, stride: as above.
        base: where the swizzle pattern starts, in 128 bytes.
        swizzle: 0, 32, 64 or 128 bytes.
    """

    start: int
    leading: int
    stride: int
    base: int
    swizzle: int

    @staticmethod
    def of(word: int) -> Descriptor:
        """Return the fields of a descriptor."""
        start, leading, stride = ((word >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        return Descriptor(start, leading, stride, word >> 49 & 7, _SWIZZLE[word >> 62])

    def swizzled(self, address: Array) -> Array:
        """Return the swizzled address of an address of the layout."""
        if not self.swizzle:
            return address
        run = (address >> 7) - self.base & self.swizzle // 16 - 1
        moved: Array = address ^ run << 4
        return moved


def problem(word: int) -> str | None:
    """Return why a descriptor is invalid, or None."""
    if stray := word & _RESERVED:
        bits = ", ".join(str(i) for i in range(64) if stray >> i & 1)
        return f"the matrix descriptor {word:#018x} sets the bits {bits}, which must be 0"
    return None


@lru_cache(maxsize=8192)
def chunks(word: int, extent: int, transposed: bool) -> Array:
    """Return the byte addresses of an operand's chunks in shared memory, as uint64.

    Args:
        word: the descriptor.
        extent: rows, a multiple of 8.
        transposed: MN-major.

    Returns:
        K-major (extent, 2): row, chunk along k. MN-major (extent / 8, 16): chunk of 8 rows, k.
    """
    d = Descriptor.of(word)
    run = max(d.swizzle, 16)
    if transposed:
        c, k = np.indices((extent // 8, 16))
        across, along = k // 8, c // (run // 16)
        far, near = (along, across) if d.swizzle else (across, along)
        offset = k % 8 * run + c % (run // 16) * 16 + far * d.leading + near * d.stride
    else:
        r, c = np.indices((extent, 2))
        offset = r % 8 * run + r // 8 * d.stride + c * (16 if d.swizzle else d.leading)
    address: Array = d.swizzled(d.start + offset).astype(np.uint64)
    address.flags.writeable = False
    return address
