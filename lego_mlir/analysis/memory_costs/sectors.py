"""Global-memory coalescing: which 32-byte sectors and 128-byte lines a request touches.

The model (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"; profilers' "sectors
per request"): the caches move whole 32-byte sectors, four to a 128-byte line, and a warp-wide
request fetches every sector that an active lane touches once, whatever the order of the lanes.
The least that any layout could do with the same data is to pack it: its distinct bytes, rounded up
to whole sectors and lines.

Device memory is read in halves of lines: a load that misses the caches brings 64 bytes for each
sector alone. Stores follow sectors.

Reading 32 neighbouring f32 values touches 4 sectors of one line, the least for 128 bytes. Reading
a column of a row-major f32 matrix touches 32 sectors of 32 lines for the same 128 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lego_mlir.analysis.memory_costs.requests import GLOBAL_WIDTHS, Bools, Ints, distinct, request
from lego_mlir.hardware.limits import CACHE_LINE_BYTES, HALF_LINE_BYTES, SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Sectors:
    """What global-memory requests cost, one entry for each request.

    Attributes:
        touched: distinct 32-byte sectors that the requests touch.
        ideal: the fewest sectors that could hold the requested bytes.
        half_lines: distinct 64-byte halves of lines that the requests touch.
        ideal_half_lines: the fewest that could hold the requested bytes.
        lines: distinct 128-byte lines that the requests touch.
        ideal_lines: the fewest lines that could hold the requested bytes.
        requested_bytes: distinct bytes that the active lanes ask for.
    """

    touched: Ints
    ideal: Ints
    half_lines: Ints
    ideal_half_lines: Ints
    lines: Ints
    ideal_lines: Ints
    requested_bytes: Ints

    @property
    def excess(self) -> Ints:
        """Sectors moved beyond the least; 0 everywhere for a coalesced layout."""
        return self.touched - self.ideal

    @property
    def efficiency(self) -> NDArray[np.float64]:
        """The fraction of the moved bytes that was requested, 0 to 1; 1 where nothing was."""
        moved = self.touched * SECTOR_BYTES
        return np.where(moved > 0, self.requested_bytes / np.maximum(moved, 1), 1.0)


def sectors(byte_offsets: ArrayLike, width: int, active: ArrayLike | None = None) -> Sectors:
    """Return the sectors and lines of warp-wide global-memory requests.

    Args:
        byte_offsets: integers of shape `(..., 32)`: the byte offset of each lane from a multiple of
            128 bytes (every allocation starts at one).
        width: bytes that each lane accesses: 1, 2, 4, 8, 16 or 32.
        active: booleans that broadcast to `(..., 32)`; `None` when every lane is active.

    Returns:
        Counts of shape `(...)`; a request without active lanes costs nothing.

    Raises:
        LegoError: a wrong shape, element type or width, or a negative or misaligned offset.
    """
    offsets, mask = request(byte_offsets, width, active, GLOBAL_WIDTHS)
    # An aligned access of at most 32 bytes never straddles sectors, and equal widths never overlap
    # in part: distinct offsets are distinct bytes.
    requested = _count(offsets, mask) * width
    return Sectors(
        touched=_count(offsets // SECTOR_BYTES, mask),
        ideal=-(-requested // SECTOR_BYTES),
        half_lines=_count(offsets // HALF_LINE_BYTES, mask),
        ideal_half_lines=-(-requested // HALF_LINE_BYTES),
        lines=_count(offsets // CACHE_LINE_BYTES, mask),
        ideal_lines=-(-requested // CACHE_LINE_BYTES),
        requested_bytes=requested,
    )


def _count(values: Ints, valid: Bools) -> Ints:
    """Return how many distinct valid values stand in each row: `(..., n)` to `(...)`."""
    _, first = distinct(values, valid)
    return np.asarray(first.sum(axis=-1), np.int64)
