"""Data races in shared memory, missing proxy fences, and reads of uninitialized shared memory.

An asynchronous operation has the clock of its thread at its issue. It happens before an access of
another thread only if that thread waited for it, directly or through other threads. A `wgmma` is a
single access of its warpgroup.

If the asynchronous proxy (bulk copies, wgmma) accesses what a thread wrote, also by `cp.async`,
`st.async` or an atomic, the ordering chain must include a `fence.proxy.async`. Of several atomics
on one address, only the last is checked. An mbarrier needs no such fence: the copy engine accesses
it through the generic proxy, so that any chain from `mbarrier.init` to the copy is enough, as the
section on the asynchronous proxy says since PTX ISA 9.3. In a cluster that chain has a
`barrier.cluster`, or a relaxed one with `fence.mbarrier_init`.

Source: PTX ISA 8 (memory consistency), 9.7.13.4 (fences), 9.7.9.25.2 (9.7.10.28.2 in PTX ISA 9.3)
and 9.7.15.4 (async proxy).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.races.access_log import AccessEvent
from lego_mlir.sim.checks.races.conditional_barriers import conditional_barrier
from lego_mlir.sim.checks.races.races import CheckedMemory, Races, verb
from lego_mlir.sim.checks.races.remote_accesses import RemoteAccesses, is_asynchronous
from lego_mlir.sim.checks.races.shadow_memory import Conflict, HappensBefore, ShadowMemory
from lego_mlir.sim.checks.races.vector_clocks import ASYNC, GENERIC, ClockSnapshot
from lego_mlir.sim.machine.memory import Buffer, Fault, MemoryAccess
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
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


class SharedRaces(Races):
    """Checks one wave; raises a `Fault` at the second of two accesses that race."""

    def begins(self, wave: Wave) -> None:
        super().begins(wave)
        self.shadow = ShadowMemory(len(self.shared.data), self.shared.stride, wave.warp_of_lane)
        self.remote = RemoteAccesses(wave, self.clocks)
        self.memory = CheckedMemory(
            self.shadow,
            self.shared,
            lambda byte: f"shared memory at {wave.program.shared_name(byte)}",
            wave.lane_name,
            self._remedy,
        )

    def accessed(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array | None
    ) -> None:
        if buffer is not self.shared or len(index) == 0:
            return
        access, index, lanes = self._expanded(access, index, lanes)
        for turn in self._turns(access, index):
            self._accessed_shared(access, index[turn], lanes[turn])

    def _accessed_shared(self, access: MemoryAccess, index: Array, lanes: Array) -> None:
        wave, shadow = self.wave, self.shadow
        addresses = index * access.width
        self.acquire(access, addresses, lanes)
        granules, who = shadow.granules(access, index, lanes)
        issue = self.issue_of(access)
        if issue is None:
            snapshot, time, floor = self.clocks.snapshot, self.clocks.now, self.clocks.floor
            columns = self.clocks.column_of(who)
        else:
            snapshot, time, floor = issue.snapshot, issue.time, issue.floor
            columns = self.columns_of_issue(issue, who, shadow.cta_index(granules))
        event = AccessEvent.of(access, granules, who, columns, time)
        # First of all: a CTA that has not started has written nothing, either.
        if len(wave.ctas) > 1 and wave.cluster_size > 1:
            self._check_remote(event, snapshot)
        self._check_initialized(event)

        def before(event: AccessEvent) -> HappensBefore:
            return lambda at, columns, times: self.clocks.happens_before(
                snapshot, event.lanes[at], columns, times
            )

        if shadow.log.recent:
            shadow.log.forget(self.horizon)
        self.check(event, self.memory, before, floor, lambda: self._check_fences(event, snapshot))
        self.release(access, addresses, lanes)

    # --- checks ---

    def _check_initialized(self, event: AccessEvent) -> None:
        """Check that what an access reads has been written.

        Raises:
            Fault: it has not.
        """
        access = event.access
        # Accesses of uninitialized mbarriers are reported by `Mbarriers`.
        reads = not access.writes or access.opcode.startswith(("atom", "red", "cp.reduce"))
        if reads and (at := self.shadow.first_unwritten(event)) is not None:
            raise Fault(
                f"{access.opcode} reads {self.memory.name_of(event, at)}, which nothing has "
                f"written",
                int(event.lanes[at]),
                "write it first, and synchronize with the thread or copy that writes it",
            )

    def _check_fences(self, event: AccessEvent, snapshot: ClockSnapshot) -> None:
        """Check that a proxy fence orders generic writes before this access.

        Raises:
            Fault: there is none.
        """
        if event.access.proxy != "async" or event.access.sync:
            return
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
                f"no proxy fence: {event.access.opcode} {verb(event.access)} "
                f"{self.memory.name_of(event, first)} through the asynchronous proxy, which "
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

    # --- shared memory of other CTAs ---

    def _check_remote(self, event: AccessEvent, snapshot: ClockSnapshot) -> None:
        """Check that the CTAs whose shared memory is accessed have started; record the access.

        Raises:
            Fault: nothing orders the access after the start of the CTA.
        """
        ctas = self.shadow.cta_index(event.granules)
        at = np.flatnonzero(ctas != self.wave.cta_index_of_lane[event.lanes])
        performing = self.performing is not None
        # An asynchronous operation accesses memory when it is performed, not at its issue.
        if not len(at) or (is_asynchronous(event.access.opcode) and not performing):
            return
        event, ctas = event.part(at, event.kind), ctas[at]
        late = self.remote.not_started(snapshot, event.lanes, ctas)
        if late is not None:
            raise Fault(
                f"{event.access.opcode} {verb(event.access)} {self.memory.name_of(event, late)} "
                f"of {self.wave.cta_name(int(ctas[late]))}, which may not have started",
                int(event.lanes[late]),
                "put barrier.cluster.arrive and barrier.cluster.wait before it",
            )
        self.remote.record(event, ctas)

    def exited(self, mask: Array) -> None:
        """Check, when CTAs exit, that all accesses of their shared memory happened before.

        Raises:
            LegoError: one did not, located at that access.
        """
        for access, lane, cta in self.remote.unfinished(mask):
            raise self.wave.error(
                f"{self.wave.cta_name(cta)} may exit while {access.opcode} "
                f"{verb(access)} its shared memory, in {self.wave.lane_name(lane)}; nothing "
                f"orders the access before the exit",
                access.instruction,
                "let it wait before it exits: put barrier.cluster.arrive after the access, and "
                "barrier.cluster.wait before the exit",
            )

    # --- reports ---

    def _remedy(self, event: AccessEvent, conflict: Conflict) -> str:
        """Return the hint that says what would order an event and an earlier access."""
        wave, access, other = self.wave, event.access, conflict.access
        lane, other_lane = event.lanes[conflict.at], conflict.thread
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
