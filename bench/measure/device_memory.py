"""What the data of every case has in common: gaps between sets, poison bytes, exact verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

GAP = 512
"""Minimum number of bytes between sets; every set starts at a multiple of it."""

POISONS = (0xCD, 0x32)
"""Two bytes that share no bit: an output that is correct by chance over one is not over the other.
"""


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """Device memory as any library takes it, by `__cuda_array_interface__`."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Return version 3 of the interface."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking the outputs of all sets.

    Attributes:
        elements: number of elements compared.
        differing: number of elements that differ from the reference by more than is allowed.
        outside: number of bytes written between the outputs.
    """

    elements: int
    differing: int
    outside: int

    @property
    def is_correct(self) -> bool:
        """Return whether every element is correct and nothing else was written."""
        return self.differing == self.outside == 0


def stride_of(size: int) -> int:
    """Return the bytes from a set of `size` bytes to the next, with at least one gap between."""
    return (size // GAP + 2) * GAP


def sets_for(bytes_per_set: int, cache_bytes: int, max_sets: int) -> int:
    """Return how many sets together touch `cache_bytes`: at least one, at most `max_sets`."""
    return max(1, min(max_sets, -(-cache_bytes // bytes_per_set)))
