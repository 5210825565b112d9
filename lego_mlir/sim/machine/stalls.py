"""Lanes that stall before an instruction until something holds, such as a phase of an mbarrier.

Waits that may fail (`mbarrier.try_wait`) do so once, each in each lane, if there is something to
wait for, so that it shows whether the program tries again; in the random order they may fail at any
time.

Stalled lanes look again whenever a phase is complete. When nothing else can run, asynchronous
operations that would complete what they wait for are performed, one by one. If there is none, the
waits that may fail do fail, and the program does what it does then; that it only tries again shows
by nothing having changed, and is a deadlock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.basic_block_ends import StallCondition
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Mask, Wave

PATIENCE = 64
"""How often lanes may find, with nothing else to run, that what they try for has not come."""


class Stalls:
    """The stalled lanes of a wave.

    Attributes:
        lanes: by the block of the program that they stall before.
        tried: by the same, those whose wait has failed since it last held.
        must_recheck: whether they should look again.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.lanes: dict[int, Array] = {}
        self.tried: dict[int, Array] = {}
        self.must_recheck = False
        self._excused: Mask = None
        self._fruitless = (0, 0)

    def gate(self, at: int) -> StallCondition:
        """What the lanes before a block wait for."""
        entry = self.wave.program.basic_blocks[at].entry
        assert isinstance(entry, StallCondition)
        return entry

    def admits(self, at: int, gate: StallCondition) -> bool:
        """Stall those active lanes that must wait; the others stay in the mask. False: none."""
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
        """Which of the lanes that must wait before a block fail to, and go on."""
        wave = self.wave
        if wave.order.random is not None:
            return waiting & wave.order.chance(0.25)
        tried = self.tried.get(at, np.zeros(wave.lanes, np.bool_))
        self.tried[at] = np.where(wave.active(), waiting, tried)
        failing: Array = waiting & ~tried
        return failing

    def wake(self) -> None:
        """Stalled lanes look again."""
        self.must_recheck = False
        for at, mask in self.lanes.items():
            self.wave.make_ready(at, mask)
        self.lanes.clear()

    def resolve(self) -> None:
        """Nothing else can run: let stalled lanes go on, if anything helps."""
        while self.lanes and not self.must_recheck and self.wave.queues.signal(self._awaited()):
            pass
        if self.must_recheck:
            self.wake()
        elif not self.wave.ready:
            self._excuse()

    def _awaited(self) -> Array:
        """The mbarriers that they wait for, as words of shared memory."""
        found = [np.zeros(0, np.int64)]
        for at, mask in self.lanes.items():
            self.wave.mask = mask
            found.append(self.gate(at).awaits(self.wave))
        return np.concatenate(found)

    def _excuse(self) -> None:
        """Let the lanes whose waiting may fail go on without what they wait for."""
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
