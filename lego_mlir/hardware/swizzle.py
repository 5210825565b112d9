"""The swizzle of TMA and wgmma: a permutation of shared-memory addresses.

A mode of 32, 64 or 128 bytes has 2, 4 or 8 chunks of 16 bytes. As many address bits as number the
chunks, from bit 4 on, are XORed with those from bit 7 on. The swizzle is its own inverse.

Source: PTX ISA, "Swizzling modes"; CUDA driver API, CUtensorMapSwizzle.
"""

from __future__ import annotations

from typing import Any

MODES = (128, 64, 32, 0)
"""The modes in bytes, the widest first; 0 is no swizzle."""

CHUNK = 16
"""Bytes of a chunk, which a swizzle moves as a whole."""


def swizzled(address: Any, mode: int) -> Any:
    """Return the swizzled address of a byte, or from a swizzled address the original one.

    Args:
        address: an address in bytes, or an array of addresses.
        mode: one of `MODES`.
    """
    if not mode:
        return address
    return address ^ (address >> 7 & mode // CHUNK - 1) << 4


def alignment(mode: int) -> int:
    """Return the bytes that the address of a swizzled tile is a multiple of: at least 128."""
    return max(8 * mode, 128)
