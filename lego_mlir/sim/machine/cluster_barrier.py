"""The barrier of a cluster. Source: PTX ISA 9.7.13.3 (barrier.cluster).

Every thread of the cluster arrives, continues, and later waits for the phase in which it arrived.
It must not arrive again before that. Exited threads do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_NONE = -1


class ClusterBarrier:
    """The barriers of all clusters of a wave.

    Attributes:
        phase: number of the current phase of each cluster.
        arrived: for each lane, the phase in which it arrived and for which it has not waited;
            -1: none.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.size = wave.threads * wave.cluster_size
        self.phase = np.zeros(wave.lanes // self.size, np.int64)
        self.arrived = np.full(wave.lanes, _NONE)

    def arrive(self, *, release: bool) -> None:
        """Let the active lanes arrive.

        Raises:
            Fault: a lane has arrived already.
        """
        mask = self.wave.active()
        twice = mask & (self.arrived != _NONE)
        if twice.any():
            raise Fault(
                "barrier.cluster.arrive for the second time, without barrier.cluster.wait between",
                int(np.argmax(twice)),
            )
        self.arrived = np.where(mask, self._of_lanes(self.phase), self.arrived)
        self.wave.progress += 1
        self.wave.observer.cluster_arrived(mask, release=release)
        self.open()

    def open(self) -> None:
        """Complete the phase of each cluster in which all living threads have arrived."""
        here = self.has_arrived()
        missing = self._per_cluster(self.wave.alive & ~here)
        opens = (missing == 0) & (self._per_cluster(here) > 0)
        if opens.any():
            self.wave.observer.cluster_completed(self._of_lanes(opens))
            self.phase = self.phase + opens
            self.wave.stalls.must_recheck = True
            self.wave.progress += 1

    def has_arrived(self) -> Array:
        """Return which lanes have arrived in the current phase."""
        arrived: Array = self.arrived == self._of_lanes(self.phase)
        return arrived

    def passable(self) -> Array:
        """Return which lanes may pass `barrier.cluster.wait`.

        Raises:
            Fault: an active lane has not arrived.
        """
        mask = self.wave.active()
        absent = mask & (self.arrived == _NONE)
        if absent.any():
            raise Fault(
                "barrier.cluster.wait without barrier.cluster.arrive before",
                int(np.argmax(absent)),
            )
        passes: Array = self.arrived < self._of_lanes(self.phase)
        return passes

    def leave(self) -> None:
        """Record that the active lanes have passed."""
        mask = self.wave.active()
        self.wave.observer.cluster_opened(mask)
        self.arrived = np.where(mask, _NONE, self.arrived)

    def missing(self, lane: int) -> int:
        """Return how many living threads of a lane's cluster have not arrived."""
        here = self.has_arrived()
        return int(self._per_cluster(self.wave.alive & ~here)[lane // self.size])

    def _of_lanes(self, values: Array) -> Array:
        return np.repeat(values, self.size)

    def _per_cluster(self, mask: Array) -> Array:
        counts: Array = mask.reshape(-1, self.size).sum(axis=1)
        return counts
