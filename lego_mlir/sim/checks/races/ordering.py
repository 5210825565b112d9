"""How synchronization updates the happens-before relation (the vector clocks) of a wave.

    bar.sync, bar.arrive, bar.red    arriving threads release, waiting threads acquire
    bar.warp.sync                    the lanes that its mask names synchronize
    barrier.cluster                  arrival releases (with .relaxed: the clock at the last fence)
    mbarriers                        an arrival releases, a successful wait acquires
    cp.async, wgmma, bulk stores     the wait for their group acquires their accesses
    bulk loads, st.async             the wait for their mbarrier acquires them
    ld.acquire, st.release, atom     through memory; relaxed ones together with fences

Shuffles and votes order nothing. Every scope is taken as wide enough.

Source: PTX ISA 8.7 to 8.10 (synchronisation, causality order), 9.7.9.25 (asynchronous copies),
9.7.13 (barriers, fences), 9.7.15.7 (wgmma groups).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARPGROUP_THREADS
from lego_mlir.sim.checks.races.vector_clocks import (
    ASYNC,
    FIRST_ASYNC_TIME,
    GENERIC,
    ClockSnapshot,
    VectorClocks,
)
from lego_mlir.sim.machine.memory import SHARED, MemoryAccess
from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.asynchronous import Operation
    from lego_mlir.sim.machine.wave import Mask, Wave

_MAX_TRACKED = 1024


@dataclass(frozen=True, slots=True)
class IssuedOperation:
    """An asynchronous operation in flight.

    Attributes:
        kind: its queue: `copies`, `stores`, `loads` or `matrix`.
        time: the time of its issue, at least `FIRST_ASYNC_TIME`.
        snapshot, floor: the clocks at its issue (see `VectorClocks`).
    """

    operation: Operation
    kind: str
    time: int
    snapshot: ClockSnapshot
    floor: int


class Ordering(Observer):
    """Tracks the happens-before relation of one wave.

    Attributes:
        at_barrier: by barrier number, the clocks of lanes at their last arrival.
        at_cluster_barrier: the clocks of lanes at their last arrival at the cluster barrier.
        at_fence: the clocks of lanes at their last fence.
        cluster_clocks: the joined clock of the last phase of each cluster barrier.
        arriving, released: the joined clock of each mbarrier: of its current phase, and of all
            completed phases.
        flags: by byte of shared memory, the clock that a release wrote there.
        observed: the joined clock of the flags that a lane read since its last fence.
        last_load: by proxy, the time of the latest operation that completed on each mbarrier.
            Bulk loads use the asynchronous proxy, `st.async` and `red.async` the generic one.
        column_of_word: by proxy, the column of the operations that complete on an mbarrier.
        issues: the latest asynchronous operations; `performing` is the one performed now.
        warned: the pairs of instructions that a warning has named.
        in_flight: the floors at the issue of those that have not been performed in all lanes.
    """

    wave: Wave

    def begins(self, wave: Wave) -> None:
        self.wave = wave
        self.shared = wave.memory.buffers[SHARED]
        opcodes = [i.opcode for i in wave.kernel.instructions]
        proxies = any(o.startswith("wgmma") or "async.bulk" in o for o in opcodes)
        proxy_count = 2 if proxies else 1
        self.clocks = VectorClocks(wave, proxy_count)
        self.at_barrier: dict[int, ClockSnapshot] = {}
        self.at_cluster_barrier = self.at_fence = self.clocks.initial
        self.cluster_clocks = np.zeros((proxy_count, wave.lanes // self.clocks.local), np.int64)
        self.arriving, self.released = np.zeros((2, proxy_count, 0), np.int64)
        self.flags: dict[int, Array] = {}
        self.observed = np.zeros((proxy_count, wave.lanes), np.int64)
        self.last_load = np.zeros((2, 0), np.int64)
        self.issues: dict[int, IssuedOperation] = {}
        self.in_flight: dict[int, int] = {}
        self.performing: IssuedOperation | None = None
        self.warned: set[tuple[int, int]] = set()
        self.column_of_word = np.full((2, self.shared.stride // 8 * wave.cluster_size), -1)

    def _tick(self) -> None:
        """Increment the time, and free unused rows if there are many."""
        self.clocks.tick()
        if self.clocks.rows.needs_collection:
            self.clocks.rows.collect(self._live())

    def _live(self) -> Iterator[Array]:
        snapshots = [
            self.clocks.snapshot,
            self.at_cluster_barrier,
            self.at_fence,
            *self.at_barrier.values(),
        ]
        snapshots += [issue.snapshot for issue in self.issues.values()]
        yield from (snapshot.rows for snapshot in snapshots)
        yield from (
            self.cluster_clocks,
            self.arriving,
            self.released,
            self.observed,
            *self.flags.values(),
        )

    # --- barriers ---

    def barrier_arrived(self, number: int, mask: Array) -> None:
        before = self.at_barrier.get(number, self.clocks.initial)
        self.at_barrier[number] = self.clocks.snapshot.where(mask, before)
        self._tick()

    def barrier_opened(self, number: int, mask: Array, waited: Array) -> None:
        wave = self.wave
        ctas = mask.reshape(-1, wave.threads)
        opens = ctas.any(axis=1)
        group = np.cumsum(opens) - 1
        # If all living threads of a CTA arrive, the accesses of exited threads happened before too.
        absent = ~ctas & ~wave.alive.reshape(-1, wave.threads)
        whole = np.logical_and(opens, (ctas | absent).all(axis=1))
        exited = (absent & whole[:, None]).reshape(-1)
        arriving_lanes = np.flatnonzero(mask | exited)
        snapshot = self.clocks.snapshot.where(exited, self.at_barrier[number])
        joined = self.clocks.joined(
            snapshot, arriving_lanes, group[wave.cta_index_of_lane[arriving_lanes]]
        )
        waiting_lanes = np.flatnonzero(waited)
        self.clocks.synchronize(joined, group[wave.cta_index_of_lane[waiting_lanes]], waiting_lanes)

    def warp_converged(self, members: Array, mask: Mask) -> None:
        wave = self.wave
        members = np.broadcast_to(members, wave.lanes).astype(np.int64)
        lanes = np.flatnonzero(wave.active() & (members >> wave.lane_in_warp & 1 != 0))
        keys = (wave.warp_of_lane[lanes] << 32) + members[lanes]
        groups = np.unique(keys, return_inverse=True)[1]
        self.clocks.synchronize(
            self.clocks.joined(self.clocks.snapshot, lanes, groups), groups, lanes
        )
        self._tick()

    def cluster_arrived(self, mask: Array, *, release: bool) -> None:
        snapshot = self.clocks.snapshot if release else self.at_fence
        self.at_cluster_barrier = snapshot.where(mask, self.at_cluster_barrier)
        self._tick()

    def cluster_completed(self, mask: Array) -> None:
        lanes = np.flatnonzero(mask)
        # All that a thread does before its exit counts if it exits instead of arriving.
        counts = self.wave.alive | self.wave.cluster.has_arrived()
        snapshot = self.at_cluster_barrier.where(counts, self.clocks.snapshot)
        clusters, groups = np.unique(lanes // self.clocks.local, return_inverse=True)
        self.cluster_clocks[:, clusters] = self.clocks.joined(snapshot, lanes, groups)

    def cluster_opened(self, mask: Array) -> None:
        lanes = np.flatnonzero(mask)
        self.clocks.acquire(lanes, self.cluster_clocks[:, lanes // self.clocks.local])

    # --- mbarriers ---

    def mbarrier_made(self, words: Array, lanes: Array) -> None:
        more = [(0, 0), (0, len(self.wave.mbarriers.word) - self.last_load.shape[1])]
        self.arriving, self.released = np.pad(self.arriving, more), np.pad(self.released, more)
        self.last_load = np.pad(self.last_load, more)

    def mbarrier_arrived(self, words: Array, lanes: Array) -> None:
        snapshot, issue = self.clocks.snapshot, self.performing
        if issue is not None:  # cp.async.mbarrier.arrive: earlier copies of the thread are complete
            copies = issue.snapshot.copies.copy()
            copies[GENERIC] = issue.time
            snapshot = replace(issue.snapshot, copies=copies)
        words, groups = np.unique(words, return_inverse=True)
        joined = self.clocks.joined(snapshot, lanes, groups)
        rows = self._rows_of(words)
        self.arriving[:, rows] = self.clocks.rows.join(self.arriving[:, rows], joined)
        self._tick()

    def _rows_of(self, words: Array) -> Array:
        """Return the rows of mbarriers in the wave's tables."""
        row_of_word = self.wave.mbarriers.row_of_word
        assert row_of_word is not None
        rows: Array = row_of_word[words]
        return rows

    def phase_completed(self, words: Array) -> None:
        rows, table = self._rows_of(words), self.clocks.rows
        joined = table.join(self.released[:, rows], self.arriving[:, rows])
        for proxy in (GENERIC, ASYNC):
            if self.last_load[proxy, rows].any():
                columns, latest = self._columns_of(words, proxy), self.last_load[proxy, rows]
                joined[GENERIC] = table.advanced(joined[GENERIC], columns, latest)
        self.released[:, rows], self.arriving[:, rows] = joined, 0

    def phase_acquired(self, words: Array, lanes: Array) -> None:
        if len(words):
            self.clocks.acquire(lanes, self.released[:, self._rows_of(words)])

    # --- asynchronous operations ---

    def issued(self, operation: Operation) -> None:
        if len(self.issues) > _MAX_TRACKED:
            queued = {id(op) for queue in self.wave.queues.all for op in queue.operations}
            self.issues = {k: issue for k, issue in self.issues.items() if k in queued}
        clocks = self.clocks
        self.issues[id(operation)] = IssuedOperation(
            operation,
            _kind(operation),
            FIRST_ASYNC_TIME + clocks.now,
            clocks.snapshot,
            clocks.floor,
        )
        self.in_flight[id(operation)] = clocks.floor
        self._tick()

    @property
    def horizon(self) -> int:
        """Return the time up to which accesses of lanes happened before every access to come.

        An operation in flight has the clock of its issue, so it may race with accesses that all
        threads have left behind since then.
        """
        return min((self.clocks.floor, *self.in_flight.values()))

    def performed(self, operation: Operation, stage: int, mask: Array) -> None:
        self.performing = issue = self.issues[id(operation)]
        if issue.kind == "loads":
            assert operation.signals is not None
            words = operation.signals[mask].reshape(-1)
            rows, proxy = self._rows_of(words[words >= 0]), _proxy(operation)
            self.last_load[proxy, rows] = np.maximum(self.last_load[proxy, rows], issue.time)

    def finished(self, operation: Operation) -> None:
        self.performing = None
        if not any(lanes.any() for lanes in operation.remaining):
            self.in_flight.pop(id(operation), None)

    def waited(self, operation: Operation, mask: Array, stage: int | None) -> None:
        issue = self.issues[id(operation)]
        if issue.kind == "copies":
            self.clocks.acquire_copies(mask, issue.time)
        else:
            lanes = np.flatnonzero(mask)
            self.clocks.acquire_column(lanes, self._agent_columns(issue.kind, lanes), issue.time)

    def issue_of(self, access: MemoryAccess) -> IssuedOperation | None:
        """Return the operation in flight that an access belongs to; None: it is of a thread."""
        issue = self.performing
        if issue is None or issue.operation.instruction is not access.instruction:
            return None
        return issue

    def columns_of_issue(self, issue: IssuedOperation, lanes: Array, ctas: Array) -> Array:
        """Return the columns of an operation's accesses for lanes to the shared memory of CTAs."""
        if issue.kind != "loads":
            return self._agent_columns(issue.kind, lanes)
        assert issue.operation.signals is not None
        words = issue.operation.signals.reshape(self.wave.lanes, -1)[lanes]
        # A multicast signals one mbarrier in each CTA: take the one in the accessed CTA.
        here = self.wave.mbarriers.cta_indices(words) == ctas[:, None]
        pick = np.where(here.any(axis=1), here.argmax(axis=1), (words >= 0).argmax(axis=1))
        return self._columns_of(words[np.arange(len(lanes)), pick], _proxy(issue.operation))

    def _agent_columns(self, kind: str, lanes: Array) -> Array:
        """Return the columns of an operation; a warpgroup uses the column of its first lane."""
        if kind == "matrix":
            lanes = lanes - self.wave.thread_of_lane[lanes] % WARPGROUP_THREADS
        return self.clocks.async_columns(kind, lanes)

    def _columns_of(self, words: Array, proxy: int) -> Array:
        """Return the columns of operations that complete on mbarriers: one for each mbarrier."""
        table = self.column_of_word[proxy]
        addresses = words % len(table)
        fresh = np.unique(addresses[table[addresses] < 0])
        if len(fresh):
            table[fresh] = self.clocks.columns(len(fresh))
        columns: Array = table[addresses]
        return columns

    # --- fences, and flags in memory ---

    def proxy_fenced(self, kind: str, mask: Mask) -> None:
        if kind.startswith("async") and kind != "async.global":
            fenced = self._mask(mask)
            if self.clocks.proxy_count > 1:
                self.clocks.publish_to_async_proxy(fenced)
            self._tick()

    def fenced(self, kind: str, mask: Mask) -> None:
        fenced = self._mask(mask)
        lanes = np.flatnonzero(fenced)
        self.clocks.acquire(lanes, self.observed[:, lanes])
        self.observed[:, lanes] = 0
        self.at_fence = self.clocks.snapshot.where(fenced, self.at_fence)
        self._tick()

    def _mask(self, mask: Mask) -> Array:
        return np.ones(self.wave.lanes, np.bool_) if mask is None else mask

    def acquire(self, access: MemoryAccess, addresses: Array, lanes: Array) -> None:
        """Acquire the clocks of the flags that lanes read: now, or at the next fence if relaxed."""
        head, *words = access.opcode.split(".")
        if not self.flags or not access.sync or head not in ("ld", "atom"):
            return
        numbers = np.zeros((self.clocks.proxy_count, len(lanes)), np.int64)
        for address in np.unique(addresses).tolist():
            if address in self.flags:
                numbers[:, addresses == address] = self.flags[address][:, None]
        if "acquire" in words or "acq_rel" in words:
            self.clocks.acquire(lanes, numbers)
        else:
            self.observed[:, lanes] = self.clocks.rows.join(self.observed[:, lanes], numbers)

    def release(self, access: MemoryAccess, addresses: Array, lanes: Array) -> None:
        """Release the clocks of lanes that write flags; if relaxed, those at their last fence."""
        head, *words = access.opcode.split(".")
        if not access.sync or head not in ("st", "atom", "red") or access.proxy != "generic":
            return
        releases = "release" in words or "acq_rel" in words
        if not releases and not self.flags and self.at_fence is self.clocks.initial:
            return
        snapshot = self.clocks.snapshot if releases else self.at_fence
        changed, groups = np.unique(addresses, return_inverse=True)
        joined = self.clocks.joined(snapshot, lanes, groups)
        for k, address in enumerate(changed.tolist()):
            # An atomic operation continues the release sequence: earlier clocks stay released.
            before = self.flags.get(address) if head != "st" else None
            rows = joined[:, k]
            self.flags[address] = rows if before is None else self.clocks.rows.join(before, rows)
        self._tick()


def _kind(operation: Operation) -> str:
    """Return the queue that an operation is in."""
    opcode = operation.instruction.opcode
    if opcode.startswith("wgmma"):
        return "matrix"
    if operation.signals is not None and not opcode.startswith("cp.async.mbarrier"):
        return "loads"
    return "stores" if "bulk" in opcode else "copies"


def _proxy(operation: Operation) -> int:
    """Return the proxy through which an operation that completes on an mbarrier works."""
    return ASYNC if "bulk" in operation.instruction.opcode else GENERIC
