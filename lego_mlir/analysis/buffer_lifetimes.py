"""Offsets for buffers in one memory: buffers with disjoint lifetimes may share bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class BufferLifetime:
    """The bytes that one buffer needs, and how long.

    Attributes:
        size: bytes.
        alignment: alignment of its first byte; a power of two.
        first: number of the operation that uses it first.
        last: number of the operation that uses it last.
    """

    size: int
    alignment: int
    first_use: int
    last_use: int

    def overlaps(self, other: BufferLifetime) -> bool:
        """Return whether both buffers are needed at some operation."""
        return self.first_use <= other.last_use and other.first_use <= self.last_use


def least_bytes(buffers: Sequence[BufferLifetime]) -> int:
    """Return the bytes of the buffers that are needed at once where most are."""
    begins = [(b.first_use, b.size) for b in buffers]
    ends = [(b.last_use + 1, -b.size) for b in buffers]
    return max(accumulate(change for _, change in sorted(begins + ends)), default=0)


def assign_offsets(buffers: Sequence[BufferLifetime]) -> list[int]:
    """Return an offset for each buffer: the largest is placed first, each as low as possible."""
    offsets: dict[int, int] = {}
    for k in sorted(range(len(buffers)), key=lambda k: (-buffers[k].size, k)):
        buffer = buffers[k]
        start = 0
        taken = [
            (o, o + buffers[j].size) for j, o in offsets.items() if buffer.overlaps(buffers[j])
        ]
        for begin, end in sorted(taken):
            if start + buffer.size <= begin:  # the gap before this one is large enough
                break
            start = max(start, _aligned(end, buffer.alignment))
        offsets[k] = start
    return [offsets[k] for k in range(len(buffers))]


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
