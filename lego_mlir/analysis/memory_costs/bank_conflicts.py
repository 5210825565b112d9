"""Shared-memory bank conflicts: how many wavefronts a warp-wide request takes.

The model (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later; the
phases of wide accesses as profilers count them):

- Shared memory has 32 banks; word `w` (bytes `4w … 4w+3`) lies in bank `w mod 32`.
- A wavefront serves one word of every bank. Lanes that touch the *same* word share it, for two
  lanes need not touch the same bytes of it: a row of 2-byte elements has two lanes in each word.
- A request of at most 4 bytes a lane is one phase of 32 lanes; of 8 bytes, two phases of 16 lanes;
  of 16 bytes, four phases of 8 lanes. A phase therefore moves at most 32 words.
- A phase takes as many wavefronts as the busiest bank has distinct words, and phases add up.

Reading a column of a 32 x 32 tile of f32, row-major, lane `i` touches word `32 i`: 32 words, all
in bank 0, 32 wavefronts. One word of padding a row, or a XOR of the column with the row, spreads
them over the 32 banks: one wavefront.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lego_mlir.analysis.memory_costs.requests import (
    Bools,
    Ints,
    active_lanes,
    check_width,
    distinct,
    request,
)
from lego_mlir.hardware.limits import BANK_BYTES, BANKS, WARP_THREADS


@dataclass(frozen=True, slots=True)
class Wavefronts:
    """What shared-memory requests cost, one entry for each request.

    Attributes:
        executed: wavefronts that the requests take.
        ideal: the fewest that requests of this width with these active lanes can take.
    """

    executed: Ints
    ideal: Ints

    @property
    def excess(self) -> Ints:
        """Wavefronts lost to bank conflicts; 0 everywhere for a conflict-free layout."""
        return self.executed - self.ideal


def wavefronts(
    byte_offsets: ArrayLike,
    width: int,
    active: ArrayLike | None = None,
    *,
    combine: bool = True,
) -> Wavefronts:
    """Return the wavefronts of warp-wide shared-memory requests.

    Args:
        byte_offsets: integers of shape `(..., 32)`: the byte offset of each lane from a multiple of
            128 bytes in shared memory.
        width: bytes that each lane accesses: 1, 2, 4, 8 or 16.
        active: booleans that broadcast to `(..., 32)`; `None` when every lane is active.
        combine: lanes that touch the same word share it; not so those of an atomic operation,
            which take it one after the other.

    Returns:
        Counts of shape `(...)`; a request without active lanes costs nothing.

    Raises:
        LegoError: a wrong shape, element type or width, or a negative or misaligned offset.
    """
    offsets, mask = request(byte_offsets, width, active)
    load, _ = _bank_loads(offsets, mask, width, combine)
    return Wavefronts(
        executed=load.max(axis=-1).sum(axis=-1),
        ideal=ideal_wavefronts(width, mask),
    )


def conflict_degrees(byte_offsets: ArrayLike, width: int, active: ArrayLike | None = None) -> Ints:
    """Return, for each lane of warp-wide requests, how many words its busiest bank serves.

    Args:
        byte_offsets: as for `wavefronts`.
        width: bytes that each lane accesses: 1, 2, 4, 8 or 16.
        active: as for `wavefronts`.

    Returns:
        Counts of shape `(..., 32)`: 1 for a lane without a bank conflict, 0 for an inactive lane.

    Raises:
        LegoError: as `wavefronts`.
    """
    offsets, mask = request(byte_offsets, width, active)
    load, words = _bank_loads(offsets, mask, width, combine=True)
    of_words = np.take_along_axis(load, words % BANKS, axis=-1)
    of_lanes = of_words.reshape(*offsets.shape, -1).max(axis=-1)
    return np.asarray(np.where(mask, of_lanes, 0), np.int64)


def _bank_loads(offsets: Ints, mask: Bools, width: int, combine: bool) -> tuple[Ints, Ints]:
    """Return the words that each bank serves in each phase, and the words that lanes touch.

    Returns:
        `(..., phases, 32)` by bank; `(..., phases, 32)` by lane of the phase and word of the lane.
    """
    phases, words_a_lane = _phases(width), max(1, width // BANK_BYTES)
    # Whatever the width, a phase is 32 (lane, word) lane_words: (..., phases, 32).
    lane_words = (*offsets.shape[:-1], phases, WARP_THREADS // phases * words_a_lane)
    all_words = offsets[..., None] // BANK_BYTES + np.arange(words_a_lane)
    touched = np.broadcast_to(mask[..., None], all_words.shape).reshape(lane_words)
    words = all_words = all_words.reshape(lane_words)
    if combine:
        words, touched = distinct(words, touched)

    # Count each phase's words by bank, all phases in one histogram.
    phase = np.arange(touched.size // lane_words[-1]).reshape(*lane_words[:-1], 1)
    bins = (phase * BANKS + words % BANKS)[touched]
    load = np.bincount(bins, minlength=phase.size * BANKS).reshape(*lane_words[:-1], BANKS)
    return load, all_words


def ideal_wavefronts(width: int, active: ArrayLike | None = None) -> Ints:
    """Return the fewest wavefronts that a request can take, wherever its lanes point.

    That is one for every phase with an active lane: 1, 2 and 4 for a full warp that accesses at
    most 4, 8 and 16 bytes a lane.

    Args:
        width: bytes that each lane accesses: 1, 2, 4, 8 or 16.
        active: booleans of shape `(..., 32)`; `None` for one request of a full warp.

    Returns:
        Counts of shape `(...)`.

    Raises:
        LegoError: there is no access of that width, or the mask is none.
    """
    check_width(width)
    mask = active_lanes(active, (WARP_THREADS,) if active is None else np.shape(active))
    phases = _phases(width)
    by_phase = mask.reshape(*mask.shape[:-1], phases, WARP_THREADS // phases)
    return np.asarray(by_phase.any(axis=-1).sum(axis=-1), np.int64)


def _phases(width: int) -> int:
    """Return how many phases a request takes before any conflict: each moves at most 128 bytes."""
    return max(1, width * WARP_THREADS // (BANKS * BANK_BYTES))
