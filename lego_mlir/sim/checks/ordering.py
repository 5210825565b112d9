"""What orders the accesses of a wave: its synchronisations, told to its clocks.

    bar.sync, bar.arrive, bar.red    all that come tell, those that wait learn
    bar.warp.sync                    the lanes that its mask names
    barrier.cluster                  tells at the arrival, or with .relaxed at the last fence
    mbarriers                        an arrival tells, a wait that succeeds learns
    cp.async, wgmma, bulk stores     the wait for their group learns what they did
    bulk loads, st.async             the wait for their mbarrier does
    ld.acquire, st.release, atom     through memory; relaxed ones with fences beside them

Cooperation by shuffles and votes orders nothing. Scopes are taken as wide enough.

Source: PTX ISA 8.7 to 8.10 (synchronisation, causality order), 9.7.9.25 (asynchronous copies),
9.7.13 (barriers, fences), 9.7.15.7 (wgmma groups).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARPGROUP_THREADS
from lego_mlir.sim.checks.vector_clocks import ASYNC, BESIDE, GENERIC, Clocks, View
from lego_mlir.sim.machine.memory import SHARED, Access
from lego_mlir.sim.machine.observer import Observer
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.asynchronous import Operation
    from lego_mlir.sim.machine.wave import Mask, Wave

_MANY = 1024


@dataclass(frozen=True, slots=True)
class Issue:
    """An asynchronous operation.

    Attributes:
        kind: `copies`, `stores`, `loads` or `matrix`, as the queues.
        time: when it was issued, from `BESIDE` on.
        view, floor: what was known then (see `Clocks`).
    """

    operation: Operation
    kind: str
    time: int
    view: View
    floor: int


class Ordering(Observer):
    """Hears of the synchronisations of one wave.

    Attributes:
        came: by the number of a barrier, what lanes told when they last came to it.
        came_to_cluster: what they told at the barrier of their cluster.
        at_fence: what they knew at their last fence.
        of_cluster: rows that wait to be learnt: of the last phase of each cluster's barrier,
        telling, told: of each mbarrier in the phase that goes on, and in those before,
        flags: of bytes of shared memory,
        seen: of flags that lanes have read without a fence since.
        loaded: by proxy the latest operation that each mbarrier has been told of: bulk loads are
            done by the asynchronous one, `st.async` and `red.async` by the generic one.
        column_of_word: by proxy the column of what completes on an mbarrier.
        unseen: mbarriers that the copy engine need not see yet, and the lanes that made them.
        issues: the asynchronous operations in flight; `performing` is one that is performed now.
    """

    wave: Wave

    def begins(self, wave: Wave) -> None:
        self.wave = wave
        self.shared = wave.memory.buffers[SHARED]
        opcodes = [i.opcode for i in wave.kernel.instructions]
        proxies = any(o.startswith("wgmma") or "async.bulk" in o for o in opcodes)
        sides = 2 if proxies else 1
        self.clocks = Clocks(wave, sides)
        self.came: dict[int, View] = {}
        self.came_to_cluster = self.at_fence = self.clocks.nothing
        self.of_cluster = np.zeros((sides, wave.lanes // self.clocks.local), np.int64)
        self.telling, self.told = np.zeros((2, sides, 0), np.int64)
        self.flags: dict[int, Array] = {}
        self.seen = np.zeros((sides, wave.lanes), np.int64)
        self.loaded = np.zeros((2, 0), np.int64)
        self.unseen: dict[int, int] = {}
        self.issues: dict[int, Issue] = {}
        self.performing: Issue | None = None
        self.column_of_word = np.full((2, self.shared.stride // 8 * wave.cluster_size), -1)

    def _tick(self) -> None:
        """Time goes on, and rows that nobody needs are forgotten."""
        self.clocks.tick()
        if self.clocks.rows.crowded:
            self.clocks.rows.keep(self._live())

    def _live(self) -> Iterator[Array]:
        views = [self.clocks.view, self.came_to_cluster, self.at_fence, *self.came.values()]
        views += [issue.view for issue in self.issues.values()]
        yield from (view.rows for view in views)
        yield from (self.of_cluster, self.telling, self.told, self.seen, *self.flags.values())

    # --- barriers ---

    def barrier_arrived(self, number: int, mask: Array) -> None:
        before = self.came.get(number, self.clocks.nothing)
        self.came[number] = self.clocks.view.where(mask, before)
        self._tick()

    def barrier_opened(self, number: int, mask: Array, waited: Array) -> None:
        wave = self.wave
        blocks = mask.reshape(-1, wave.threads)
        opens = blocks.any(axis=1)
        group = np.cumsum(opens) - 1
        # Where all living threads of a block meet, those that have exited were there before.
        absent = ~blocks & ~wave.alive.reshape(-1, wave.threads)
        whole = np.logical_and(opens, (blocks | absent).all(axis=1))
        gone = (absent & whole[:, None]).reshape(-1)
        tellers = np.flatnonzero(mask | gone)
        view = self.clocks.view.where(gone, self.came[number])
        told = self.clocks.told(view, tellers, group[wave.slot_of_lane[tellers]])
        listening = np.flatnonzero(waited)
        self.clocks.meet(told, group[wave.slot_of_lane[listening]], listening)

    def warp_converged(self, members: Array, mask: Mask) -> None:
        wave = self.wave
        members = np.broadcast_to(members, wave.lanes).astype(np.int64)
        lanes = np.flatnonzero(wave.active() & (members >> wave.lane_in_warp & 1 != 0))
        keys = (wave.warp_of_lane[lanes] << 32) + members[lanes]
        groups = np.unique(keys, return_inverse=True)[1]
        self.clocks.meet(self.clocks.told(self.clocks.view, lanes, groups), groups, lanes)
        self._tick()

    def cluster_arrived(self, mask: Array, *, release: bool) -> None:
        view = self.clocks.view if release else self.at_fence
        self.came_to_cluster = view.where(mask, self.came_to_cluster)
        self._tick()

    def cluster_completed(self, mask: Array) -> None:
        lanes = np.flatnonzero(mask)
        view = self.came_to_cluster.where(self.wave.alive, self.clocks.view)
        clusters, groups = np.unique(lanes // self.clocks.local, return_inverse=True)
        self.of_cluster[:, clusters] = self.clocks.told(view, lanes, groups)

    def cluster_opened(self, mask: Array) -> None:
        lanes = np.flatnonzero(mask)
        self.clocks.learn(lanes, self.of_cluster[:, lanes // self.clocks.local])

    # --- mbarriers ---

    def mbarrier_made(self, words: Array, lanes: Array) -> None:
        self.unseen |= dict(zip(words.tolist(), lanes.tolist(), strict=True))
        more = [(0, 0), (0, len(self.wave.mbarriers.word) - self.loaded.shape[1])]
        self.telling, self.told = np.pad(self.telling, more), np.pad(self.told, more)
        self.loaded = np.pad(self.loaded, more)

    def mbarrier_arrived(self, words: Array, lanes: Array) -> None:
        view, issue = self.clocks.view, self.performing
        if issue is not None:  # cp.async.mbarrier.arrive: the copies before it are done
            copies = issue.view.copies.copy()
            copies[GENERIC] = issue.time
            view = replace(issue.view, copies=copies)
        words, groups = np.unique(words, return_inverse=True)
        told = self.clocks.told(view, lanes, groups)
        rows = self._rows_of(words)
        self.telling[:, rows] = self.clocks.rows.union(self.telling[:, rows], told)
        self._tick()

    def _rows_of(self, words: Array) -> Array:
        """The rows of mbarriers in the wave's tables."""
        row_of_word = self.wave.mbarriers.row_of_word
        assert row_of_word is not None
        rows: Array = row_of_word[words]
        return rows

    def phase_completed(self, words: Array) -> None:
        rows, table = self._rows_of(words), self.clocks.rows
        told = table.union(self.told[:, rows], self.telling[:, rows])
        for proxy in (GENERIC, ASYNC):
            if self.loaded[proxy, rows].any():
                columns, latest = self._columns_of(words, proxy), self.loaded[proxy, rows]
                told[GENERIC] = table.raised(told[GENERIC], columns, latest)
        self.told[:, rows], self.telling[:, rows] = told, 0

    def phase_acquired(self, words: Array, lanes: Array) -> None:
        if len(words):
            self.clocks.learn(lanes, self.told[:, self._rows_of(words)])

    # --- asynchronous operations ---

    def issued(self, operation: Operation) -> None:
        if len(self.issues) > _MANY:
            queued = {id(op) for queue in self.wave.queues.all for op in queue.operations}
            self.issues = {k: issue for k, issue in self.issues.items() if k in queued}
        clocks = self.clocks
        self.issues[id(operation)] = Issue(
            operation, _kind(operation), BESIDE + clocks.now, clocks.view, clocks.floor
        )
        self._tick()

    def performed(self, operation: Operation, stage: int, mask: Array) -> None:
        self.performing = issue = self.issues[id(operation)]
        if issue.kind == "loads":
            assert operation.signals is not None
            words = operation.signals[mask].reshape(-1)
            rows, proxy = self._rows_of(words[words >= 0]), _proxy(operation)
            self.loaded[proxy, rows] = np.maximum(self.loaded[proxy, rows], issue.time)

    def finished(self, operation: Operation) -> None:
        self.performing = None

    def waited(self, operation: Operation, mask: Array, stage: int | None) -> None:
        issue = self.issues[id(operation)]
        if issue.kind == "copies":
            self.clocks.learn_of_copies(mask, issue.time)
        else:
            lanes = np.flatnonzero(mask)
            self.clocks.learn_of(lanes, self._columns_beside(issue.kind, lanes), issue.time)

    def columns_of_issue(self, issue: Issue, lanes: Array, blocks: Array) -> Array:
        """The columns of what an operation does for lanes in the shared memory of blocks."""
        if issue.kind != "loads":
            return self._columns_beside(issue.kind, lanes)
        assert issue.operation.signals is not None
        words = issue.operation.signals.reshape(self.wave.lanes, -1)[lanes]
        # Of the mbarriers of a multicast, the one in the same block.
        here = self.wave.mbarriers.slots(words) == blocks[:, None]
        pick = np.where(here.any(axis=1), here.argmax(axis=1), (words >= 0).argmax(axis=1))
        return self._columns_of(words[np.arange(len(lanes)), pick], _proxy(issue.operation))

    def _columns_beside(self, kind: str, lanes: Array) -> Array:
        """The columns of what is done for lanes; a warpgroup's first lane stands for all."""
        if kind == "matrix":
            lanes = lanes - self.wave.thread_of_lane[lanes] % WARPGROUP_THREADS
        return self.clocks.beside(kind, lanes)

    def _columns_of(self, words: Array, proxy: int) -> Array:
        """The columns of what completes on mbarriers: one for each word of a cluster's memory."""
        table = self.column_of_word[proxy]
        places = words % len(table)
        fresh = np.unique(places[table[places] < 0])
        if len(fresh):
            table[fresh] = self.clocks.columns(len(fresh))
        columns: Array = table[places]
        return columns

    # --- fences, and flags in memory ---

    def proxy_fenced(self, kind: str, mask: Mask) -> None:
        if kind.startswith("async") and kind != "async.global":
            fenced = self._mask(mask)
            if self.clocks.sides > 1:
                self.clocks.show(fenced)
            self._show_mbarriers(fenced)
            self._tick()

    def fenced(self, kind: str, mask: Mask) -> None:
        fenced = self._mask(mask)
        if kind.startswith("mbarrier_init"):
            self._show_mbarriers(fenced)
        lanes = np.flatnonzero(fenced)
        self.clocks.learn(lanes, self.seen[:, lanes])
        self.seen[:, lanes] = 0
        self.at_fence = self.clocks.view.where(fenced, self.at_fence)
        self._tick()

    def _mask(self, mask: Mask) -> Array:
        return np.ones(self.wave.lanes, np.bool_) if mask is None else mask

    def _show_mbarriers(self, fenced: Array) -> None:
        self.unseen = {word: lane for word, lane in self.unseen.items() if not fenced[lane]}

    def acquire(self, access: Access, places: Array, lanes: Array) -> None:
        """Who reads a flag knows what its writer told: at once, or from the next fence on."""
        head, *words = access.opcode.split(".")
        if not self.flags or not access.sync or head not in ("ld", "atom"):
            return
        numbers = np.zeros((self.clocks.sides, len(lanes)), np.int64)
        for place in np.unique(places).tolist():
            if place in self.flags:
                numbers[:, places == place] = self.flags[place][:, None]
        if "acquire" in words or "acq_rel" in words:
            self.clocks.learn(lanes, numbers)
        else:
            self.seen[:, lanes] = self.clocks.rows.union(self.seen[:, lanes], numbers)

    def release(self, access: Access, places: Array, lanes: Array) -> None:
        """Who writes a flag tells what it knows, or what it knew at its last fence."""
        head, *words = access.opcode.split(".")
        if not access.sync or head not in ("st", "atom", "red") or access.proxy != "generic":
            return
        releases = "release" in words or "acq_rel" in words
        if not releases and not self.flags and self.at_fence is self.clocks.nothing:
            return
        view = self.clocks.view if releases else self.at_fence
        changed, groups = np.unique(places, return_inverse=True)
        told = self.clocks.told(view, lanes, groups)
        for k, place in enumerate(changed.tolist()):
            # What an atomic operation changes still tells what was told before.
            before = self.flags.get(place) if head != "st" else None
            rows = told[:, k]
            self.flags[place] = rows if before is None else self.clocks.rows.union(before, rows)
        self._tick()


def _kind(operation: Operation) -> str:
    """In which queue an operation is."""
    opcode = operation.instruction.opcode
    if opcode.startswith("wgmma"):
        return "matrix"
    if operation.signals is not None and not opcode.startswith("cp.async.mbarrier"):
        return "loads"
    return "stores" if "bulk" in opcode else "copies"


def _proxy(operation: Operation) -> int:
    """By which proxy an operation that completes on an mbarrier accesses memory."""
    return ASYNC if "bulk" in operation.instruction.opcode else GENERIC
