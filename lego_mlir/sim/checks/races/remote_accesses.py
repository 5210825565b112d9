"""Accesses of the shared memory of other CTAs of a cluster: not before they start, nor after exit.

The shared memory of a CTA is valid from its start to the exit of its last thread. A CTA may access
that of another one after a chain of synchronizations leads from a thread of that CTA to the access,
and the CTA may exit after a chain leads from the access to one of its threads.

Source: PTX ISA 5.1.6 (shared state space), 9.7.13.3 (barrier.cluster); CUDA Programming Guide,
distributed shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.races.access_log import AccessEvent
from lego_mlir.sim.checks.races.vector_clocks import GENERIC, ClockSnapshot, VectorClocks
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_ASYNCHRONOUS = ("cp.", "st.async", "red.async")


def is_asynchronous(opcode: str) -> bool:
    """Return whether an instruction accesses the shared memory of other CTAs asynchronously."""
    return opcode.startswith(_ASYNCHRONOUS)


class RemoteAccesses:
    """The latest accesses of each CTA's shared memory by agents of other CTAs.

    Attributes:
        latest: by CTA of the wave, and by vector-clock column: the time of the latest access, its
            index in `accesses`, and its lane.
    """

    def __init__(self, wave: Wave, clocks: VectorClocks) -> None:
        self.wave = wave
        self.clocks = clocks
        self.latest: dict[int, Array] = {}
        self.accesses: list[MemoryAccess] = []

    def not_started(self, snapshot: ClockSnapshot, lanes: Array, ctas: Array) -> int | None:
        """Return the first element for which no chain leads from its CTA's threads to its lane."""
        threads = self.wave.threads
        rows = self.clocks.rows.times[snapshot.rows[GENERIC, lanes], : self.clocks.local]
        known = rows.reshape(len(lanes), -1, threads).max(axis=2) > 0
        started = known[np.arange(len(lanes)), ctas % self.wave.cluster_size]
        return None if started.all() else int(np.argmin(started))

    def record(self, event: AccessEvent, ctas: Array) -> None:
        """Record an access: element k accesses the shared memory of the CTA `ctas[k]`."""
        self.accesses.append(event.access)
        number, columns = len(self.accesses) - 1, self.clocks.rows.times.shape[1]
        for cta in np.unique(ctas).tolist():
            found = self.latest.get(cta, np.zeros((3, 0), np.int64))
            if found.shape[1] < columns:
                found = np.pad(found, [(0, 0), (0, columns - found.shape[1])])
            here = ctas == cta
            newer = event.time >= found[0, event.columns[here]]
            at = event.columns[here][newer]
            found[0, at], found[1, at] = event.time, number
            found[2, at] = event.lanes[here][newer]
            self.latest[cta] = found

    def unfinished(self, exited: Array) -> Iterator[tuple[MemoryAccess, int, int]]:
        """Yield the accesses, with lane and CTA, that may follow the exit of a CTA.

        Args:
            exited: the lanes that exit now.
        """
        if not self.latest:
            return
        threads = self.wave.threads
        alive = np.logical_or.reduce(self.wave.alive.reshape(-1, threads), axis=1)
        for cta in np.unique(np.flatnonzero(exited) // threads).tolist():
            found = self.latest.get(cta)
            if alive[cta] or found is None:
                continue
            rows = self.clocks.snapshot.rows[GENERIC, cta * threads : (cta + 1) * threads]
            reached = self.clocks.rows.times[np.unique(rows), : found.shape[1]].max(axis=0)
            late = np.flatnonzero(found[0] > reached)
            if len(late):
                _, number, lane = found[:, late[0]].tolist()
                yield self.accesses[number], lane, cta
