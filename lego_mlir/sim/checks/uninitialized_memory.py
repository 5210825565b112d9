"""Reads of global memory that nothing has written: workspaces, which no caller fills.

The arrays that are arguments of a launch have values. A workspace has none until a kernel writes
it, maybe one of an earlier launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.sim.machine.memory import POISON, Buffer, Fault, MemoryAccess
from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_UPDATES = ("atom", "red", "cp.reduce")
"""Instructions that read what they write."""


@dataclass(frozen=True, eq=False, slots=True)
class Workspace:
    """Global memory whose values are unknown until they are written.

    Attributes:
        array: the memory; where it, or a tensor map of it, is an argument of a launch, reads are
            checked.
        written: whether each byte has been written.
    """

    array: Array
    written: Array

    @staticmethod
    def allocate(shape: Sequence[int], dtype: Any, *, zeroed: bool) -> Workspace:
        """Return memory of a shape and a NumPy type, with zeros or with unknown values."""
        data = np.full(prod(shape) * np.dtype(dtype).itemsize, 0 if zeroed else POISON, np.uint8)
        return Workspace(data.view(dtype).reshape(shape), np.full(data.size, zeroed, np.bool_))


class UninitializedMemory(Observer):
    """The check of a wave's reads of workspaces."""

    def __init__(self, workspaces: Sequence[Workspace]) -> None:
        self._written = {_address(w.array): w.written for w in workspaces}

    def begins(self, wave: Wave) -> None:
        """Note the wave, whose lanes make the accesses."""
        self._wave = wave

    def accessed(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array | None
    ) -> None:
        """Check that what is read was written, and note what is written."""
        written = self._written.get(_address(buffer.data))
        if written is None:
            return
        at = index[:, None] * access.width + np.arange(access.bytes)
        if not access.writes or access.opcode.startswith(_UPDATES):
            missing = ~written[at].all(axis=1)
            if missing.any():
                first = int(np.argmax(missing))
                if lanes is None and len(index) == 1:  # all active lanes access one address
                    lanes = np.flatnonzero(self._wave.active())
                raise Fault(
                    f"uninitialized: {access.opcode} reads byte {int(at[first, 0])} of "
                    f"{buffer.name}, a workspace, before a kernel writes it",
                    first if lanes is None else int(lanes[first]),
                )
        if access.writes:
            written[at] = True


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
