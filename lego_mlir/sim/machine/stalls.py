"""Lanes that stall before an instruction until a condition holds, such as an mbarrier phase.

A wait that may fail (`mbarrier.try_wait`) fails once in each lane if its phase is incomplete, which
shows whether the program retries. In the random order it may fail at any time.

Stalled lanes check again whenever a phase completes. When nothing else can run, asynchronous
operations that complete what they wait for are performed, one by one. If there is none, the waits
that may fail do fail, and the program continues. If it only retries, so that nothing changes, it is
a deadlock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.basic_block_ends import StallCondition
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Mask, Wave

PATIENCE = 64
"""The number of failed waits, with nothing else to run, after which a retry is a deadlock."""


class Stalls:
    """The stalled lanes of a wave.

    Attributes:
        lanes: by the basic block before which they stall.
        tried: by basic block, the lanes whose wait failed since it last succeeded.
        must_recheck: whether they must check their condition again.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.lanes: dict[int, Array] = {}
        self.tried: dict[int, Array] = {}
        self.must_recheck = False
        self._excused: Mask = None
        self._fruitless = (0, 0)

    def gate(self, at: int) -> StallCondition:
        """Return the condition that the lanes before a basic block wait for."""
        entry = self.wave.program.basic_blocks[at].entry
        assert isinstance(entry, StallCondition)
        return entry

    def admits(self, at: int, gate: StallCondition) -> bool:
        """Stall the active lanes that must wait; return whether any lane stays in the mask."""
        wave = self.wave
        mask = asking = wave.active()
        if gate.guard is not None:
            asking = mask & gate.guard(wave)
            if not asking.any():
                return True
        wave.mask = asking
        passing = mask & (~asking | gate.holds(wave))
        if self._excused is not None:
            passing = passing | (mask & self._excused)
            self._excused = self._excused & ~passing
        if gate.tries:
            passing = passing | self._failing(at, mask & ~passing)
        stalling = mask & ~passing
        if stalling.any():
            others = self.lanes.get(at)
            self.lanes[at] = stalling if others is None else stalling | others
        wave.mask = None if passing.all() else passing
        return bool(passing.any())

    def _failing(self, at: int, waiting: Array) -> Array:
        """Return which of the waiting lanes have their wait fail, and continue."""
        wave = self.wave
        if wave.order.random is not None:
            return waiting & wave.order.chance(0.25)
        tried = self.tried.get(at, np.zeros(wave.lanes, np.bool_))
        self.tried[at] = np.where(wave.active(), waiting, tried)
        failing: Array = waiting & ~tried
        return failing

    def wake(self) -> None:
        """Let stalled lanes check their condition again."""
        self.must_recheck = False
        for at, mask in self.lanes.items():
            self.wave.make_ready(at, mask)
        self.lanes.clear()

    def resolve(self) -> None:
        """Let stalled lanes continue when nothing else can run, if any operation allows it."""
        while self.lanes and not self.must_recheck and self.wave.queues.signal(self._awaited()):
            pass
        if self.must_recheck:
            self.wake()
        elif not self.wave.ready:
            self._excuse()

    def _awaited(self) -> Array:
        """Return the mbarriers that stalled lanes wait on, as words of shared memory."""
        found = [np.zeros(0, np.int64)]
        for at, mask in self.lanes.items():
            self.wave.mask = mask
            found.append(self.gate(at).awaits(self.wave))
        return np.concatenate(found)

    def _excuse(self) -> None:
        """Let the lanes whose wait may fail continue with a failed wait."""
        since, times = self._fruitless
        progress = self.wave.progress
        times = times + 1 if since == progress else 0
        self._fruitless = (progress, times)
        if times >= PATIENCE:
            return
        for at in [at for at in self.lanes if self.gate(at).tries]:
            mask = self.lanes.pop(at)
            self._excused = mask if self._excused is None else self._excused | mask
            self.wave.make_ready(at, mask)
