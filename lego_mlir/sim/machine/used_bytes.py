"""Loads of which only some bytes are used.

Compilers widen loads: of three numbers of 2 bytes that lie in 8 aligned ones they read all 8, and
say which are used by `.pragma "used_bytes_mask 0x3f"` (PTX ISA 11.5). No page of memory ends within
them, so the others may be past the end of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lego_mlir.sim.machine.memory import (
    POISON,
    WINDOW_BITS,
    WINDOWS,
    Memory,
    MemoryAccess,
    base_of,
)
from lego_mlir.sim.ptx.types import UNSIGNED, Array


def load_used(
    used: int,
    memory: Memory,
    access: MemoryAccess,
    address: Array,
    mask: Array | None,
    lanes: int,
) -> list[Array]:
    """Load as `Memory.load` does; of what is past the end of a buffer only used bytes are checked.

    Args:
        used: bit k says whether byte k is used.
        memory: the wave's.
        access: the access.
        address: of each lane, or one of all.
        mask: the active lanes, None for all.
        lanes: of the wave.

    Raises:
        Fault: as `Memory.load`, where bytes are used.
    """
    ends = _ends(memory, access, address)
    active = np.ones(lanes, np.bool_) if mask is None else mask
    partial = active & np.broadcast_to(ends, lanes)
    if not partial.any():
        return memory.load(access, address, mask, lanes)
    whole = active & ~partial
    found = memory.load(access, address, whole, lanes) if whole.any() else None
    data = np.full((lanes, access.bytes), POISON, np.uint8)
    data[~partial] = 0
    if found is not None:
        data[whole] = np.stack([np.broadcast_to(x, lanes) for x in found], 1).view(np.uint8)[whole]
    for first, size in _runs(used & (1 << access.bytes) - 1):
        part = replace(access, width=size, count=1)
        (value,) = memory.load(part, address + np.uint64(first), partial, lanes)
        each = np.ascontiguousarray(np.broadcast_to(value, lanes)).view(np.uint8)
        data[partial, first : first + size] = each.reshape(lanes, size)[partial]
    numbers = data.view(UNSIGNED[8 * access.width])
    return [np.ascontiguousarray(numbers[:, k]) for k in range(access.count)]


def _ends(memory: Memory, access: MemoryAccess, address: Array) -> Array:
    """Return which addresses lie in a buffer that ends before the last byte of an access."""
    if access.space in WINDOWS:
        return np.zeros(len(address), np.bool_)
    windows = address >> np.uint64(WINDOW_BITS)
    ends = np.zeros(len(address), np.bool_)
    for number in np.unique(windows):
        buffer = memory.buffers.get(int(number))
        if buffer is not None:
            offset = address - np.uint64(base_of(int(number)))
            last = np.uint64(max(0, buffer.size - access.bytes))
            ends |= (windows == number) & (offset > last) & (offset < np.uint64(buffer.size))
    return ends


def _runs(used: int) -> Iterator[tuple[int, int]]:
    """Yield aligned powers of two of bytes that are all used: the first of each, and how many."""
    first = 0
    while used >> first:
        if not used >> first & 1:
            first += 1
            continue
        size = 1
        while size < 8 and first % (2 * size) == 0:
            both = (1 << 2 * size) - 1
            if used >> first & both != both:
                break
            size *= 2
        yield first, size
        first += size
