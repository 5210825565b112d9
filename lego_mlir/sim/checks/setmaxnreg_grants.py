"""The registers that `setmaxnreg` moves between the threads of a CTA.

A CTA has the registers that it was launched with. `setmaxnreg.dec` returns some to the CTA's pool;
`setmaxnreg.inc` takes some from it, and waits until there are enough. All warps of a warpgroup
execute the same `setmaxnreg`. A kernel for which the assembler cannot know the registers at entry
(see `pressure.at_entry`) moves none, as on a GPU.

Source: PTX ISA 9.7.19.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARPGROUP_THREADS, WARPGROUP_WARPS
from lego_mlir.sim.checks.setmaxnreg_checks import at_entry
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


@dataclass(frozen=True, slots=True, eq=False)
class IssueDigest:
    """The number of times that each lane executed an instruction."""

    instruction: Instruction
    times: Array


class Grants:
    """The number of registers of each thread of a wave.

    Attributes:
        entry: at the start, or None where no registers are moved.
        held: now, in each lane.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.entry = at_entry(wave.kernel)
        self.held = np.full(wave.lanes, self.entry or 0)
        self.tallies: dict[int, IssueDigest] = {}

    def free(self) -> Array:
        """Return the free registers of each CTA of the wave."""
        w = self.wave
        free: Array = (self.entry or 0) * w.threads - self.held.reshape(-1, w.threads).sum(axis=1)
        return free

    def enough(self, count: int) -> Array:
        """Return which active lanes can have so many registers now; True for other lanes.

        The warps of a CTA are served in order, each as a whole.
        """
        w = self.wave
        if self.entry is None:
            return np.ones(w.lanes, np.bool_)
        requested = np.where(w.active(), np.maximum(count - self.held, 0), 0)
        total = requested.reshape(-1, w.threads).cumsum(axis=1)
        lacking = (total > self.free()[:, None]).reshape(-1) & (requested > 0)
        fits: Array = (np.bincount(w.warp_of_lane, lacking, w.warps) == 0)[w.warp_of_lane]
        return fits

    def set(self, instruction: Instruction, count: int, *, more: bool) -> None:
        """Set the number of registers of the active lanes.

        Raises:
            Fault: they had more before an `inc` or fewer before a `dec`, or have no warpgroup.
        """
        w = self.wave
        active = w.active()
        self._check_group(instruction, active)
        tally = self.tallies.setdefault(
            id(instruction), IssueDigest(instruction, np.zeros(w.lanes, np.int64))
        )
        tally.times[active] += 1
        if self.entry is None:
            return
        wrong = active & (self.held > count if more else self.held < count)
        if wrong.any():
            lane = int(np.argmax(wrong))
            raise Fault(
                f"{instruction.opcode} to {count} registers where the thread has {self.held[lane]}",
                lane,
            )
        self.held[active] = count
        w.stalls.must_recheck = True
        w.progress += 1

    def reason(self, lane: int, count: int) -> str:
        """Return what a lane waits for that cannot have so many registers, as text."""
        w = self.wave
        free = int(self.free()[lane // w.threads])
        return (
            f"for {count} registers a thread: it has {self.held[lane]}, and of the "
            f"{(self.entry or 0) * w.threads} of its CTA {free} are free"
        )

    def finish(self) -> None:
        """Check, at the end, that the threads of each warpgroup executed the same `setmaxnreg`.

        Raises:
            LegoError: they have not.
        """
        w = self.wave
        whole = w.threads // WARPGROUP_THREADS * WARPGROUP_THREADS
        for tally in self.tallies.values():
            times = tally.times.reshape(-1, w.threads)[:, :whole].reshape(-1, WARPGROUP_THREADS)
            uneven = times != times[:, :1]
            if not uneven.any():
                continue
            group, thread = (int(i) for i in np.argwhere(uneven)[0])
            cta_index, start = divmod(group * WARPGROUP_THREADS, whole)
            first = cta_index * w.threads + start
            raise w.error(
                f"{w.lane_name(first)} executes {tally.instruction.opcode} "
                f"{times[group, 0]} times, and thread {thread} of its warpgroup "
                f"{times[group, thread]} times",
                tally.instruction,
                "all warps of a warpgroup execute the same setmaxnreg (PTX ISA 9.7.19.5)",
            )

    def _check_group(self, instruction: Instruction, active: Array) -> None:
        w = self.wave
        lacking = active & (
            (w.thread_of_lane // WARPGROUP_THREADS + 1) * WARPGROUP_THREADS > w.threads
        )
        if lacking.any():
            raise Fault(
                f"{instruction.opcode} needs the {WARPGROUP_WARPS} warps of a warpgroup, and "
                f"the CTA has {w.threads} threads",
                int(np.argmax(lacking)),
            )
