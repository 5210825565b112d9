"""Data races in global memory, and the flags that order the accesses of different CTAs.

CTAs are in no order: not of their numbers, nor of the waves in which the simulator runs them. A
chain from one to another leads through a flag in global memory: the writing thread releases what
happened before (an atomic or a store with `.release` or `.acq_rel`, or a relaxed or `.volatile` one
after a fence), and a thread that finds the flag acquires it (with `.acquire` or `.acq_rel`, or with
a fence behind a relaxed load). Between CTAs the scope of both must be `.gpu` or `.sys`:
`__threadfence()` orders them, `__threadfence_block()` does not. Without a fence a flag orders
nothing, so that a missing `__threadfence` is found as a race of the accesses that it should order.

Launches are in order: a launch finds all that earlier ones wrote. With programmatic dependent
launch, that holds from `griddepcontrol.wait` on; what a kernel accesses before it is not checked.

The proxies of global memory are not told apart.

Source: PTX ISA 8.7 to 8.10 (release and acquire patterns, scopes), 9.7.13.4 (membar, fence).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.limits import check_limit
from lego_mlir.sim.checks.races.access_log import AccessEvent
from lego_mlir.sim.checks.races.harmless_loads import HarmlessLoads
from lego_mlir.sim.checks.races.launch_clocks import LaunchClocks
from lego_mlir.sim.checks.races.races import CheckedMemory
from lego_mlir.sim.checks.races.shadow_memory import Conflict, HappensBefore, ShadowMemory
from lego_mlir.sim.checks.races.shared_races import SharedRaces
from lego_mlir.sim.checks.races.vector_clocks import GENERIC, ClockSnapshot
from lego_mlir.sim.machine.memory import Buffer, MemoryAccess
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Mask, Wave

_SHADOW_BYTES = 64
"""Bytes of shadow memory for each granule, about."""

Flag = tuple[int, int, int]
"""A flag: its memory, its byte, and the cluster in which it holds; -1: in all."""


@dataclass(slots=True)
class GlobalMemory:
    """What the checks know of global memory, for all waves of a launch.

    Attributes:
        shadows: by the address of a buffer's bytes on the host, its shadow.
        clocks: the views of other clusters.
        flags: the view that a release wrote to each flag.
    """

    shadows: dict[int, ShadowMemory] = field(default_factory=dict)
    clocks: LaunchClocks = field(default_factory=LaunchClocks)
    flags: dict[Flag, int] = field(default_factory=dict)


class GlobalRaces(SharedRaces):
    """Finds the races of one wave in shared memory, and those in global memory with all waves.

    Attributes:
        launched: what is known of global memory.
        observed: the views of the flags that a lane read since its last fence: of flags that hold
            in its cluster, and of those that hold in all.
        at_wide_fence: the clocks of lanes at their last fence of scope `.gpu` or `.sys`.
    """

    def __init__(self, launched: GlobalMemory) -> None:
        self.launched = launched

    def begins(self, wave: Wave) -> None:
        super().begins(wave)
        self.clocks.rows.launch = self.launched.clocks
        self.views_read = np.zeros((2, wave.lanes), np.int64)
        self.at_wide_fence = self.clocks.initial
        # A column of the launch is the number of a cluster and a column of its wave. There are at
        # most as many columns as this: of lanes, of their operations, and of mbarriers.
        self.width = 8 * self.clocks.local + 2 * self.column_of_word.shape[1]
        clusters = np.array([self._cluster_number(int(cta)) for cta in wave.ctas])
        self.cluster_of_lane = clusters[wave.cta_index_of_lane]
        self.thread_of_lane = wave.cta_of_lane * wave.threads + wave.thread_of_lane

    def _cluster_number(self, cta: int) -> int:
        """Return a number for the cluster of a CTA, which no other cluster of the launch has."""
        (gx, gy, _), (cx, cy, cz) = self.wave.launch.grid, self.wave.launch.cluster
        x, y, z = cta % gx, cta // gx % gy, cta // (gx * gy)
        return x // cx + (gx // cx) * (y // cy + (gy // cy) * (z // cz))

    def accessed(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array | None
    ) -> None:
        super().accessed(access, buffer, index, lanes)
        if buffer.starts is not None or not buffer.writable or len(index) == 0:
            return
        access, index, lanes = self._expanded(access, index, lanes)
        for turn in self._turns(access, index):
            self._accessed_global(access, buffer, index[turn], lanes[turn])

    def _accessed_global(
        self, access: MemoryAccess, buffer: Buffer, index: Array, lanes: Array
    ) -> None:
        place = buffer.data.ctypes.data
        addresses = index * access.width
        self._acquire_flags(access, place, addresses, lanes)
        shadow = self._shadow(place, buffer)
        granules, who = shadow.granules(access, index, lanes)
        issue = self.issue_of(access)
        if issue is None:
            snapshot, time = self.clocks.snapshot, self.clocks.now
            columns = self.clocks.column_of(who)
        else:
            snapshot, time = issue.snapshot, issue.time
            columns = self.columns_of_issue(issue, who, np.full(len(who), -2))
        columns = self.cluster_of_lane[who] * self.width + columns
        threads = self.thread_of_lane[who]
        event = AccessEvent.of(access, granules, who, columns, time, threads)
        memory = CheckedMemory(
            shadow,
            buffer,
            lambda byte: f"{buffer.name} at byte {byte}",
            self._thread_name,
            self._global_remedy,
        )
        self.check(event, memory, lambda event: self._before(event, snapshot), 0)
        self._release_flags(access, place, addresses, lanes)

    def _shadow(self, place: int, buffer: Buffer) -> ShadowMemory:
        """Return the shadow of a buffer; two arguments may be the same array."""
        found = self.launched.shadows.get(place)
        if found is None:
            size = max(len(buffer.data), 1)
            what = "the shadow of " + buffer.name + " for global_checks has {} bytes"
            check_limit("memory_bytes", size // 4 * _SHADOW_BYTES, what)
            found = ShadowMemory(
                size,
                1 << 62,
                self.wave.warp_of_lane,
                np.int64,
                HarmlessLoads(self.wave.program, self.wave.threads),
            )
            self.launched.shadows[place] = found
        found.warp_of_lane = self.wave.warp_of_lane
        return found

    def _before(self, event: AccessEvent, snapshot: ClockSnapshot) -> HappensBefore:
        """Return the function that decides which accesses happen before elements of an event."""

        def before(at: Array, columns: Array, times: Array) -> Array:
            lanes = event.lanes[at]
            clusters, columns = np.divmod(columns, self.width)
            own = clusters == self.cluster_of_lane[lanes]
            within = self.clocks.happens_before(snapshot, lanes, np.where(own, columns, 0), times)
            result: Array = own & within
            if not own.all():
                views = self.clocks.rows.views[snapshot.rows[GENERIC, lanes]]
                others = np.flatnonzero(~own & (views > 0))
                result[others] = self.launched.clocks.happens_before(
                    views[others], clusters[others], columns[others], times[others]
                )
            return result

        return before

    # --- flags ---

    def fenced(self, kind: str, mask: Mask) -> None:
        super().fenced(kind, mask)
        fenced = self._mask(mask)
        lanes = np.flatnonzero(fenced)
        is_wide = _is_wide(kind)
        views = self.views_read[0, lanes]
        if is_wide:
            views = self.launched.clocks.joins(views, self.views_read[1, lanes])
            self.at_wide_fence = self.clocks.snapshot.where(fenced, self.at_wide_fence)
        self._acquire_views(lanes, views)
        self.views_read[: 1 + is_wide, lanes] = 0
        self._tick()

    def _acquire_flags(
        self, access: MemoryAccess, place: int, addresses: Array, lanes: Array
    ) -> None:
        """Acquire the views of the flags that lanes read: now, or at a fence if relaxed."""
        head, *words = access.opcode.split(".")
        flags = self.launched.flags
        if not flags or not access.sync or head not in ("ld", "atom"):
            return
        near, wide = np.zeros((2, len(lanes)), np.int64)
        for k, address in enumerate(addresses.tolist()):
            near[k] = flags.get((place, address, int(self.cluster_of_lane[lanes[k]])), 0)
            wide[k] = flags.get((place, address, -1), 0)
        if not near.any() and not wide.any():
            return
        join = self.launched.clocks.joins
        if "acquire" in words or "acq_rel" in words:
            self._acquire_views(lanes, join(near, wide) if _is_wide(access.opcode) else near)
            return
        self.views_read[0, lanes] = join(self.views_read[0, lanes], near)
        self.views_read[1, lanes] = join(self.views_read[1, lanes], wide)

    def _acquire_views(self, lanes: Array, views: Array) -> None:
        """Join views into the clocks of lanes."""
        table, here = self.clocks.rows, np.flatnonzero(views)
        if not len(here):
            return
        lanes, views = lanes[here], views[here]
        clusters = self.cluster_of_lane[lanes]
        numbers = np.zeros((self.clocks.proxy_count, len(lanes)), np.int64)
        pairs, which = np.unique(np.stack([views, clusters]), axis=1, return_inverse=True)
        rows = np.zeros((pairs.shape[1], table.times.shape[1]), np.int32)
        for row, view, cluster in zip(rows, *pairs.tolist(), strict=True):
            known = self.launched.clocks.views[view].get(cluster)
            if known is not None:
                row[: len(known)] = known
        numbers[GENERIC] = table.add(rows, pairs[0])[which.reshape(-1)]
        self.clocks.acquire(lanes, numbers)

    def _release_flags(
        self, access: MemoryAccess, place: int, addresses: Array, lanes: Array
    ) -> None:
        """Write the views of lanes that release to flags; if relaxed, those at their last fence."""
        head, *words = access.opcode.split(".")
        if not access.sync or head not in ("st", "atom", "red") or access.proxy != "generic":
            return
        flags, launched = self.launched.flags, self.launched.clocks
        wide = _is_wide(access.opcode)
        snapshot = self.at_wide_fence if wide else self.at_fence
        if "release" in words or "acq_rel" in words:
            snapshot = self.clocks.snapshot
        clusters = self.cluster_of_lane[lanes]
        if head == "st":
            for address, cluster in zip(addresses.tolist(), clusters.tolist(), strict=True):
                flags.pop((place, address, -1), None)
                flags.pop((place, address, cluster), None)
        released = np.flatnonzero(snapshot.own[GENERIC, lanes])
        if not len(released):
            return
        lanes, addresses, clusters = lanes[released], addresses[released], clusters[released]
        pairs, groups = np.unique(np.stack([addresses, clusters]), axis=1, return_inverse=True)
        joined = self.clocks.joined(snapshot, lanes, groups.reshape(-1))[GENERIC]
        table = self.clocks.rows
        for row, address, cluster in zip(joined.tolist(), *pairs.tolist(), strict=True):
            view = launched.extended(int(table.views[row]), cluster, table.times[row].copy())
            flag = (place, address, -1 if wide else cluster)
            # An atomic operation continues the release sequence: earlier views stay released.
            flags[flag] = launched.join(flags.get(flag, 0), view) if head != "st" else view
        self._tick()

    # --- reports ---

    def _thread_name(self, thread: int) -> str:
        launch, threads = self.wave.launch, self.wave.threads
        return f"{launch.thread_name(thread % threads)} of {launch.cta_name(thread // threads)}"

    def _global_remedy(self, event: AccessEvent, conflict: Conflict) -> str:
        """Return the hint that says what would order an event and an earlier access."""
        lane, other = int(event.lanes[conflict.at]), conflict.thread
        wave = self.wave
        same_cta = wave.cta_of_lane[lane] == other // wave.threads
        if same_cta:
            return "put a barrier between the two: bar.sync (__syncthreads)"
        return (
            "use an atomic, or leave the second access to another launch; else let the first "
            "thread set a flag after __threadfence() (fence.acq_rel.gpu), and the other one wait "
            "for the flag before another __threadfence()"
        )


def _is_wide(words: str) -> bool:
    """Return whether a fence or an access of flags has a scope that reaches other clusters."""
    return not {"cta", "cluster"} & set(words.split("."))
