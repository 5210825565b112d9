"""How TMA and WGMMA swizzle shared memory: a function of addresses.

In a mode of 32, 64 or 128 bytes, bits 4 and up of a shared-memory address, as many as the mode has
16-byte chunks, are XORed with those from bit 7 on. It is its own inverse.

Source: PTX ISA, "Swizzling modes"; CUDA driver API, CUtensorMapSwizzle.
"""

from __future__ import annotations

from typing import Any

MODES = (128, 64, 32, 0)
"""In bytes, the widest first; 0 is no swizzle."""

CHUNK = 16
"""Bytes that stay together."""


def swizzled(address: Any, mode: int) -> Any:
    """Where a byte lies that would lie at `address` without swizzling, and the other way round.

    Args:
        address: in bytes, an int or an array of them.
        mode: one of `MODES`.
    """
    if not mode:
        return address
    return address ^ (address >> 7 & mode // CHUNK - 1) << 4


def alignment(mode: int) -> int:
    """What a tile's address is a multiple of, in bytes: where the pattern begins, 128 at least."""
    return max(8 * mode, 128)
