"""Data races in shared memory, missing proxy fences, and reads of uninitialized shared memory.

Two accesses of one address race if different agents make them, at least one writes, they are not
both atomic, and neither happens before the other (see `ordering`). This does not depend on the
order in which this run performs them, so one run finds every race among the accesses that it makes.

An asynchronous operation has the clock of its thread at its issue. It happens before an access of
another thread only if that thread waited for it, directly or through other threads. A `wgmma` is a
single access of its warpgroup.

If the asynchronous proxy (bulk copies, wgmma) accesses what a thread wrote, also by `cp.async`,
`st.async` or an atomic, the ordering chain must include a `fence.proxy.async`. Of several atomics
on one address, only the last is checked. The copy engine must see mbarriers too: the thread that
initializes one executes `fence.mbarrier_init` or `fence.proxy.async`.

Lanes of one warp that write the same address by one instruction do not race: one of them wins.
Otherwise only `bar.warp.sync` and the barriers order the lanes of a warp.

Source: PTX ISA 8 (memory consistency), 9.7.13.4 (fences), 9.7.9.25.2 and 9.7.15.4 (async proxy).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.conditional_barriers import conditional_barrier
from lego_mlir.sim.checks.ordering import Ordering
from lego_mlir.sim.checks.shadow_memory import AccessEvent, Conflict, ShadowMemory
from lego_mlir.sim.checks.vector_clocks import ASYNC, GENERIC, ClockSnapshot
from lego_mlir.sim.machine.memory import Buffer, Fault, MemoryAccess
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
"""The instructions that wait for an asynchronous operation, by the start of its opcode."""


class Races(Ordering):
    """Checks one wave; raises a `Fault` at the second of two accesses that race."""

    def begins(self, wave: Wave) -> None:
        super().begins(wave)
        self.shadow = ShadowMemory(len(self.shared.data), self.shared.stride, wave.warp_of_lane)

    def accessed(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array | None
    ) -> None:
        if buffer is not self.shared or len(index) == 0:
            return
        wave = self.wave
        if lanes is None:
            lanes = np.flatnonzero(wave.active()) if len(index) == 1 else np.arange(wave.lanes)
        index = np.broadcast_to(index, len(lanes))
        addresses = index * access.width
        self.acquire(access, addresses, lanes)
        granules, who = self.shadow.granules(access, index, lanes)
        issue = self.performing
        if issue is None or issue.operation.instruction is not access.instruction:
            snapshot, time, floor = self.clocks.snapshot, self.clocks.now, self.clocks.floor
            columns = self.clocks.column_of(who)
        else:
            snapshot, time, floor = issue.snapshot, issue.time, issue.floor
            columns = self.columns_of_issue(issue, who, self.shadow.cta_index(granules))
        event = AccessEvent.of(access, granules, who, columns, time)
        self._check(event, snapshot, floor)
        self.shadow.record(event, self.clocks.floor)
        self.release(access, addresses, lanes)

    # --- checks ---

    def _check(self, event: AccessEvent, snapshot: ClockSnapshot, floor: int) -> None:
        access = event.access
        # Accesses of uninitialized mbarriers are reported by `Mbarriers`.
        reads = not access.writes or access.opcode.startswith(("atom", "red", "cp.reduce"))
        if reads and (at := self.shadow.first_unwritten(event)) is not None:
            raise Fault(
                f"{access.opcode} reads {self._location_name(event, at)}, which nothing has "
                f"written",
                int(event.lanes[at]),
                "write it first, and synchronize with the thread or copy that writes it",
            )

        def happens_before(at: Array, columns: Array, times: Array) -> Array:
            return self.clocks.happens_before(snapshot, event.lanes[at], columns, times)

        conflict = self.shadow.conflict(event, happens_before, floor)
        if conflict is not None:
            raise self._race(event, conflict)
        if access.proxy == "async" and not access.sync:
            self._check_fences(event, snapshot)

    def _check_fences(self, event: AccessEvent, snapshot: ClockSnapshot) -> None:
        """Check that a proxy fence orders generic writes before this access.

        Raises:
            Fault: there is none.
        """
        columns, times = self.shadow.write_times(event)
        at = np.flatnonzero((times > 0) & self._generic(columns))
        if not len(at):
            return
        fenced_before = self.clocks.happens_before(
            snapshot, event.lanes[at], columns[at], times[at], ASYNC
        )
        if not fenced_before.all():
            first = int(at[np.argmin(fenced_before)])
            other, lane = self.shadow.last_write(event.granules[first])
            raise Fault(
                f"no proxy fence: {event.access.opcode} {_verb(event.access)} "
                f"{self._location_name(event, first)} through the asynchronous proxy, which "
                f"{self._instruction_name(other)} writes through the generic one in "
                f"{self.wave.lane_name(lane)}",
                int(event.lanes[first]),
                "put fence.proxy.async between the write and the barrier, in the writing thread",
            )

    def _generic(self, columns: Array) -> Array:
        """Return which agents use the generic proxy: threads, their `cp.async`, and `st.async`."""
        clocks, stores = self.clocks, self.column_of_word[GENERIC]
        first = clocks.bases.get("copies", 0)
        copies = (columns >= first) & (columns < first + clocks.local)
        generic: Array = (columns < clocks.local) | copies
        if stores.max() >= 0:
            generic = generic | np.isin(columns, stores)
        return generic

    def issued(self, operation: Operation) -> None:
        if (
            self.unfenced
            and operation.signals is not None
            and "bulk" in operation.instruction.opcode
        ):
            self._check_mbarriers_fenced(operation)
        super().issued(operation)

    def _check_mbarriers_fenced(self, operation: Operation) -> None:
        """Check that a fence made the mbarriers of an operation visible to the copy engine.

        Raises:
            Fault: there is none.
        """
        assert operation.signals is not None
        signals = operation.signals.reshape(self.wave.lanes, -1)
        for lane in np.flatnonzero(operation.unwaited).tolist():
            for word in self.unfenced.keys() & set(signals[lane].tolist()):
                raise Fault(
                    f"no proxy fence: {operation.instruction.opcode} completes on "
                    f"{self.wave.mbarriers.name(word)}, which may not be visible to the "
                    f"asynchronous proxy: {self.wave.lane_name(self.unfenced[word])} initialized "
                    f"it without a fence",
                    lane,
                    "put fence.mbarrier_init.release.cluster or fence.proxy.async after "
                    "mbarrier.init and before the barrier, in the same thread",
                )

    # --- reports ---

    def _race(self, event: AccessEvent, conflict: Conflict) -> Fault:
        lane, access, other = int(event.lanes[conflict.at]), event.access, conflict.access
        return Fault(
            f"data race: {access.opcode} {_verb(access)} "
            f"{self._location_name(event, conflict.at)}, which {self._instruction_name(other)} "
            f"{_verb(other)} in {self.wave.lane_name(conflict.lane)}; nothing orders the two",
            lane,
            self._remedy(access, other, lane, conflict.lane),
        )

    def _remedy(self, access: MemoryAccess, other: MemoryAccess, lane: int, other_lane: int) -> str:
        """Return the hint that says what would order two accesses, of which `other` came first."""
        wave = self.wave
        for start, wait in _WAITS:
            if other.opcode.startswith(start):
                return f"wait for {start} first: {wait}"
        if wave.cta_index_of_lane[lane] != wave.cta_index_of_lane[other_lane]:
            return "put barrier.cluster.arrive and barrier.cluster.wait between the two"
        if wave.warp_of_lane[lane] == wave.warp_of_lane[other_lane]:
            return "put bar.warp.sync between the two, or a barrier of the CTA"
        barrier = conditional_barrier(wave.program, other.instruction, access.instruction)
        if barrier is not None:
            return (
                f"{barrier.opcode} ({wave.location_name(barrier)}) stands between the two, but "
                f"under a condition: move it to where all threads of the CTA execute it"
            )
        return "put a barrier between the two: bar.sync (gpu.barrier), or an mbarrier"

    def _instruction_name(self, access: MemoryAccess) -> str:
        """Return an instruction's opcode with its location in the PTX and in the source."""
        return f"{access.opcode} ({self.wave.location_name(access.instruction)})"

    def _location_name(self, event: AccessEvent, at: int) -> str:
        byte = self.shadow.byte(int(event.granules[at]))
        return f"shared memory at {self.wave.program.shared_name(byte)}"


def _verb(access: MemoryAccess) -> str:
    if access.sync and access.opcode.startswith("mbarrier"):
        return "uses"
    return "writes" if access.writes else "reads"
