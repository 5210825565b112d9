"""Parts of memory, and one operation's access of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_passes.insert_barriers.elements import Elements

UNKNOWN = 1 << 31
"""The end of a buffer that may lie anywhere in shared memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A part of memory: bytes of shared memory, or a buffer that the host passes.

    Attributes:
        buffer: the buffer.
        first: its first byte in shared memory.
        end: the byte behind it.
        is_shared: whether it is in shared memory.
        may_overlap: whether the host may pass buffers that overlap.
        is_ordered: whether the barriers that are there order the accesses of the buffer.
    """

    buffer: Any
    first: int = 0
    end: int = 0
    is_shared: bool = False
    may_overlap: bool = False
    is_ordered: bool = False

    def meets(self, other: Region) -> bool:
        """Return whether the two may have bytes in common."""
        if self.is_shared or other.is_shared:
            both = self.is_shared and other.is_shared
            return both and self.first < other.end and other.first < self.end
        return self.may_overlap or self.buffer == other.buffer

    def has_offsets_of(self, other: Region) -> bool:
        """Return whether the same offset in both is the same byte."""
        both_known = UNKNOWN not in (self.end, other.end)
        return self.buffer == other.buffer or (self.is_shared and both_known)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One operation's access of one part of memory.

    Attributes:
        op: the operation.
        region: what it accesses.
        reads: whether it reads there.
        writes: whether it writes there.
        is_atomic: whether what it does is atomic.
        is_exclusive: whether the kernel promises that no other thread stores the same elements.
        is_sent: whether it goes to the shared memory of CTAs of the cluster, or is what they sent:
            the exchange's own barrier lets it be read (`lower_tiles.conversions.clusters`).
        elements: which elements its threads access; `None` if that is unknown.
        group: the number of those of a kernel with the same `kind`.
    """

    op: Any
    region: Region
    reads: bool
    writes: bool
    is_atomic: bool
    is_exclusive: bool
    is_sent: bool
    elements: Elements | None
    group: int = 0

    @property
    def kind(self) -> tuple[Region, bool, bool, bool, bool, bool]:
        """What is equal of accesses that conflict with the same ones."""
        how = self.reads, self.writes, self.is_atomic, self.is_exclusive, self.is_sent
        return self.region, *how

    def conflicts(self, other: Access) -> bool:
        """Return whether the order of the two matters, if they access the same bytes."""
        if self.is_atomic and other.is_atomic:
            return False
        if self.is_exclusive and other.is_exclusive and self.region.buffer == other.region.buffer:
            return False
        if self.region.is_ordered and self.region.buffer == other.region.buffer:
            return False
        if self.is_sent and other.is_sent and self.writes:
            return False  # waited for, or part of the same exchange
        return (self.writes or other.writes) and self.region.meets(other.region)

    def is_of_scatter(self, other: Access) -> bool:
        """Return whether the two are parts of one lego.scatter, whose order does not matter."""
        number = tiles.scatter_number_of(self.op)
        return number is not None and number == tiles.scatter_number_of(other.op)
