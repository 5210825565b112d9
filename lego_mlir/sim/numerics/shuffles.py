"""Which lane a shuffle reads. Source: PTX ISA 9.7.9.6 (shfl.sync)."""

from __future__ import annotations

import numpy as np

from lego_mlir.sim.ptx.types import Array

_FIVE = np.uint32(31)


def source_lanes(mode: str, lane: Array, by: Array, clamp: Array) -> tuple[Array, Array]:
    """Return for each lane the one whose value it gets, and whether that lies in range.

    Args:
        mode: `up`, `down`, `bfly` or `idx`.
        lane: the number of each lane in its warp, as int64.
        by: the lane, offset or mask that each lane names, as uint32.
        clamp: the segment mask (bits 8 to 12) and the clamp value (bits 0 to 4), as uint32.
    """
    shift = (by & _FIVE).astype(np.int64)
    limit = (clamp & _FIVE).astype(np.int64)
    segment = (clamp >> np.uint32(8) & _FIVE).astype(np.int64)
    most = (lane & segment) | (limit & ~segment)
    match mode:
        case "up":
            other = lane - shift
            valid = other >= most
        case "down":
            other = lane + shift
            valid = other <= most
        case "bfly":
            other = lane ^ shift
            valid = other <= most
        case _:
            other = (lane & segment) | (shift & ~segment)
            valid = other <= most
    return np.where(valid, other, lane), valid
