"""Packing buffers into one memory: those that are never needed at once may share their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BufferLifetime:
    """What one buffer needs.

    Attributes:
        size: in bytes.
        alignment: of its first byte; a power of two.
        first: the moment from which on it is needed.
        last: the moment up to which it is needed, itself included.
    """

    size: int
    alignment: int
    first_use: int
    last_use: int

    def overlaps(self, other: BufferLifetime) -> bool:
        """Whether there is a moment at which both are needed."""
        return self.first_use <= other.last_use and other.first_use <= self.last_use


def assign_offsets(rooms: Sequence[BufferLifetime]) -> list[int]:
    """An offset for each of the rooms, the largest placed first, each as low as it can be."""
    offsets: dict[int, int] = {}
    for k in sorted(range(len(rooms)), key=lambda k: (-rooms[k].size, k)):
        room = rooms[k]
        taken = [(o, o + rooms[j].size) for j, o in offsets.items() if room.overlaps(rooms[j])]
        starts = [0, *(_aligned(end, room.alignment) for _, end in taken)]
        offsets[k] = min(
            start
            for start in starts
            if all(start + room.size <= begin or end <= start for begin, end in taken)
        )
    return [offsets[k] for k in range(len(rooms))]


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
