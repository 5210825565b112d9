"""Data races in shared memory, missing proxy fences, and reads of what was never written.

Two accesses of one place race if they are by different actors, one of them writes, they are not
both atomic, and nothing orders them (see `ordering`). Whether they race does not depend on the
order in which this run made them, so one run tells; but only what the run reaches is looked at.

An asynchronous operation acts at the time of its issue, knowing what its thread knew then, and is
known of by those alone who have waited for it. A `wgmma` is one act of its warpgroup.

An access of the asynchronous proxy (bulk copies, wgmma) to what a thread has written, be it by
`cp.async`, `st.async` or an atomic, needs beside the order a `fence.proxy.async` on the way from
the one to the other; of several atomics on one place only the last is looked at. The copy engine
must see the mbarriers, too: whoever makes one executes `fence.mbarrier_init` or
`fence.proxy.async`.

Lanes of one warp that write the same place by one instruction do not race: one of them wins. Apart
from that the lanes of a warp are in no order but that of `bar.warp.sync` and the barriers.

Source: PTX ISA 8 (memory consistency), 9.7.13.4 (fences), 9.7.9.25.2 and 9.7.15.4 (async proxy).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.ordering import Ordering
from lego_mlir.sim.checks.shadow_memory import Act, Conflict, Shadow
from lego_mlir.sim.checks.vector_clocks import ASYNC, GENERIC, View
from lego_mlir.sim.machine.memory import Access, Buffer, Fault
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.asynchronous import Operation
    from lego_mlir.sim.machine.wave import Wave

_WAITS = (
    ("cp.async.bulk", "mbarrier.try_wait, or cp.async.bulk.wait_group for a store"),
    ("cp.reduce", "mbarrier.try_wait, or cp.async.bulk.wait_group for one to global memory"),
    ("cp.async", "cp.async.wait_group, and a barrier for other threads"),
    ("st.async", "mbarrier.try_wait"),
    ("red.async", "mbarrier.try_wait"),
    ("wgmma", "wgmma.wait_group, and a barrier for other warpgroups"),
)
"""How one waits for operations whose opcodes begin so."""


class Races(Ordering):
    """Watches one wave; raises a `Fault` at the second of two accesses that race."""

    def begins(self, wave: Wave) -> None:
        super().begins(wave)
        self.shadow = Shadow(len(self.shared.data), self.shared.stride, wave.warp_of_lane)

    def accessed(self, access: Access, buffer: Buffer, index: Array, lanes: Array | None) -> None:
        if buffer is not self.shared or len(index) == 0:
            return
        wave = self.wave
        if lanes is None:
            lanes = np.flatnonzero(wave.active()) if len(index) == 1 else np.arange(wave.lanes)
        index = np.broadcast_to(index, len(lanes))
        places = index * access.width
        self.acquire(access, places, lanes)
        granules, who = self.shadow.granules(access, index, lanes)
        issue = self.performing
        if issue is None or issue.operation.instruction is not access.instruction:
            view, time, floor = self.clocks.view, self.clocks.now, self.clocks.floor
            columns = self.clocks.column_of(who)
        else:
            view, time, floor = issue.view, issue.time, issue.floor
            columns = self.columns_of_issue(issue, who, self.shadow.block(granules))
        act = Act.of(access, granules, who, columns, time)
        self._check(act, view, floor)
        self.shadow.record(act, self.clocks.floor)
        self.release(access, places, lanes)

    # --- checks ---

    def _check(self, act: Act, view: View, floor: int) -> None:
        access = act.access
        # Of an mbarrier that was never made the mbarriers tell themselves.
        reads = not access.writes or access.opcode.startswith(("atom", "red", "cp.reduce"))
        if reads and (at := self.shadow.unwritten(act)) is not None:
            raise Fault(
                f"{access.opcode} reads {self._place(act, at)}, which nothing has written",
                int(act.lanes[at]),
                "write it before, and wait for what writes it",
            )

        def knows(at: Array, columns: Array, times: Array) -> Array:
            return self.clocks.knows(view, act.lanes[at], columns, times)

        conflict = self.shadow.conflict(act, knows, floor)
        if conflict is not None:
            raise self._race(act, conflict)
        if access.proxy == "async" and not access.sync:
            self._check_fences(act, view)

    def _check_fences(self, act: Act, view: View) -> None:
        """What threads have written must have passed a proxy fence."""
        columns, times = self.shadow.changes(act)
        at = np.flatnonzero((times > 0) & self._generic(columns))
        if not len(at):
            return
        shown = self.clocks.knows(view, act.lanes[at], columns[at], times[at], ASYNC)
        if not shown.all():
            first = int(at[np.argmin(shown)])
            other, lane = self.shadow.changer(act.granules[first])
            raise Fault(
                f"no proxy fence: {act.access.opcode} {_verb(act.access)} "
                f"{self._place(act, first)} through the asynchronous proxy, which "
                f"{self._name(other)} writes through the generic one in "
                f"{self.wave.lane_name(lane)}",
                int(act.lanes[first]),
                "after the write, and before the barrier, its thread executes fence.proxy.async",
            )

    def _generic(self, columns: Array) -> Array:
        """Which actors use the generic proxy: threads, their `cp.async`, and `st.async`."""
        clocks, stores = self.clocks, self.column_of_word[GENERIC]
        first = clocks.bases.get("copies", 0)
        copies = (columns >= first) & (columns < first + clocks.local)
        generic: Array = (columns < clocks.local) | copies
        if stores.max() >= 0:
            generic = generic | np.isin(columns, stores)
        return generic

    def issued(self, operation: Operation) -> None:
        if self.unseen and operation.signals is not None and "bulk" in operation.instruction.opcode:
            self._check_seen(operation)
        super().issued(operation)

    def _check_seen(self, operation: Operation) -> None:
        """The copy engine sees mbarriers only after a fence."""
        assert operation.signals is not None
        signals = operation.signals.reshape(self.wave.lanes, -1)
        for lane in np.flatnonzero(operation.unwaited).tolist():
            for word in self.unseen.keys() & set(signals[lane].tolist()):
                raise Fault(
                    f"no proxy fence: {operation.instruction.opcode} completes on "
                    f"{self.wave.mbarriers.name(word)}, which the asynchronous proxy need not see: "
                    f"{self.wave.lane_name(self.unseen[word])} has made it without a fence",
                    lane,
                    "after mbarrier.init, and before the barrier, its thread executes "
                    "fence.mbarrier_init.release.cluster or fence.proxy.async",
                )

    # --- reports ---

    def _race(self, act: Act, conflict: Conflict) -> Fault:
        lane, other = int(act.lanes[conflict.at]), conflict.access
        return Fault(
            f"data race: {act.access.opcode} {_verb(act.access)} {self._place(act, conflict.at)}, "
            f"which {self._name(other)} {_verb(other)} in {self.wave.lane_name(conflict.lane)}; "
            f"nothing orders the two",
            lane,
            self._remedy(other, lane, conflict.lane),
        )

    def _remedy(self, other: Access, lane: int, other_lane: int) -> str:
        """What would order two accesses, the other of which was first."""
        wave = self.wave
        for start, wait in _WAITS:
            if other.opcode.startswith(start):
                return f"wait for {start} first: {wait}"
        if wave.slot_of_lane[lane] != wave.slot_of_lane[other_lane]:
            return "put barrier.cluster.arrive and barrier.cluster.wait between the two"
        if wave.warp_of_lane[lane] == wave.warp_of_lane[other_lane]:
            return "put bar.warp.sync between the two, or a barrier of the block"
        return "put a barrier between the two: bar.sync (gpu.barrier), or an mbarrier"

    def _name(self, access: Access) -> str:
        """An instruction, with its place in the PTX and in what that was compiled from."""
        return f"{access.opcode} ({self.wave.place(access.instruction)})"

    def _place(self, act: Act, at: int) -> str:
        byte = self.shadow.byte(int(act.granules[at]))
        return f"shared memory at {self.wave.program.shared_name(byte)}"


def _verb(access: Access) -> str:
    if access.sync and access.opcode.startswith("mbarrier"):
        return "uses"
    return "writes" if access.writes else "reads"
