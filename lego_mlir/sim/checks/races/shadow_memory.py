"""Shadow memory: the last write of each address of shared memory, and the accesses since.

Shared memory is divided into *granules*, as wide as the narrowest access so far. For each granule
the shadow memory stores the last plain write and, in a log, all other accesses since then. A new
access conflicts with a stored one if one of the two writes, unless both synchronize (atomics,
accesses of mbarriers). A conflict is a race if the earlier access does not happen before the new
one (`HappensBefore`).

The log drops accesses that happened before the last write of their granule, or before all threads.
An access that races with a dropped one also races with what replaced it (FastTrack).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lego_mlir.sim.checks.races.access_log import (
    OVERWRITTEN,
    READ,
    SAME,
    SYNC_READ,
    SYNC_WRITE,
    WRITE,
    AccessEvent,
    Log,
)
from lego_mlir.sim.checks.races.harmless_loads import HarmlessLoads
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.ptx.types import Array

_WIDEST = 16
_CONFLICTING = {
    WRITE: READ | SYNC_READ | SYNC_WRITE | OVERWRITTEN | SAME,
    SAME: SYNC_WRITE | OVERWRITTEN,
    READ: SYNC_WRITE | OVERWRITTEN,
    SYNC_READ: OVERWRITTEN,
    SYNC_WRITE: READ | OVERWRITTEN | SAME,
}
"""For each kind of access, the kinds since the last plain write that conflict with it. Reads since
then that found its value do not conflict with a write of the same value."""

HappensBefore = Callable[[Array, Array, Array], Array]
"""Whether the accesses of columns at times happen before these elements of an event."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two unordered accesses of one granule.

    Attributes:
        at: index of the element of the event.
        access, thread: the earlier access, and who made it.
    """

    at: int
    access: MemoryAccess
    thread: int


class ShadowMemory:
    """The shadow memory of some bytes.

    Args:
        size: the number of bytes.
        stride: bytes of the memory of one CTA.
        warp_of_lane: the warp of each lane of the wave.
        columns: an integer type for the columns of agents.
        harmless: decides which loads need no order with a write.

    Attributes:
        granule: bytes of a granule.
        written: whether the granule has been written.
        time, access_id, thread, column: the last plain write: its time, its index in `accesses`
            (0: there was none), its lane or thread, and the column of its agent.
        sync_time, sync_access_id, sync_thread, sync_column: the last synchronizing write.
        winner: the lane whose value stays, of those that write by one instruction.
        since: the kinds of all accesses since the last plain write, as bits.
        latest: the latest time of those.
        accesses: all accesses, by id.
    """

    PER_GRANULE = (
        *("written", "time", "access_id", "thread", "column", "since", "latest"),
        *("sync_time", "sync_access_id", "sync_thread", "sync_column", "winner"),
    )

    def __init__(
        self,
        size: int,
        stride: int,
        warp_of_lane: Array,
        columns: type[np.integer[Any]] = np.int32,
        harmless: HarmlessLoads | None = None,
    ) -> None:
        self.harmless = harmless
        count = -(-size // _WIDEST)
        self.stride = stride
        self.warp_of_lane = warp_of_lane
        self.granule = _WIDEST
        self.written = np.zeros(count, np.bool_)
        self.time, self.access_id, self.thread, self.latest = np.zeros((4, count), np.int32)
        self.column, self.sync_column = np.zeros((2, count), columns)
        self.sync_time, self.sync_access_id, self.sync_thread, self.winner = np.zeros(
            (4, count), np.int32
        )
        self.since = np.zeros(count, np.uint8)
        self.accesses: list[MemoryAccess | None] = [None]
        self.log = Log(self)

    def granules(self, access: MemoryAccess, index: Array, lanes: Array) -> tuple[Array, Array]:
        """Return the granules of an access and the lane of each; narrow the granules if needed."""
        while self.granule > access.bytes:
            self._halve()
        first, each = index * access.width // self.granule, access.bytes // self.granule
        if each == 1:
            return first, lanes
        return (first[:, None] + np.arange(each)).reshape(-1), np.repeat(lanes, each)

    def _halve(self) -> None:
        self.granule //= 2
        for name in self.PER_GRANULE:
            setattr(self, name, np.repeat(getattr(self, name), 2))
        self.log.halve()

    def cta_index(self, granules: Array) -> Array:
        """Return the indices in the wave of the CTAs that granules belong to."""
        indices: Array = granules * self.granule // self.stride
        return indices

    def byte(self, granule: int) -> int:
        """Return the byte at which a granule starts in the shared memory of its CTA."""
        return granule * self.granule % self.stride

    # --- queries ---

    def first_unwritten(self, event: AccessEvent) -> int | None:
        """Return the first element whose granule has not been written, if there is one."""
        written = self.written[event.granules]
        return None if written.all() else int(np.argmin(written))

    def conflict(
        self, event: AccessEvent, happens_before: HappensBefore, floor: int, ignored: int = 0
    ) -> Conflict | None:
        """Return an earlier access that races with an event, if there is one.

        Args:
            event: the new access.
            happens_before: decides which earlier accesses happen before it.
            floor: accesses of lanes up to this time happen before it.
            ignored: kinds of earlier accesses that may be unordered.
        """
        kinds = _CONFLICTING[event.kind] & ~ignored
        return (
            (
                self._conflict_with_plain_write(event, happens_before, floor)
                if event.kind != SAME
                else None
            )
            or self._conflict_with_logged(event, happens_before, floor, kinds)
            or (self._conflict_within(event) if event.kind == WRITE else None)
        )

    def same_values(
        self, event: AccessEvent, new: Array, old: Array, happens_before: HappensBefore
    ) -> tuple[Array, Array]:
        """Return which elements of a plain write another thread writes with the same value.

        Args:
            event: the write.
            new: the bytes of each element, as an array (elements, granule).
            old: the bytes in memory before, in the same shape.
            happens_before: decides which earlier accesses happen before it.

        Returns:
            Whether the element is the `SAME` as the last plain write or as another element, and
            whether it changes nothing.
        """
        winner = _winners(event.granules)
        apart = self.warp_of_lane[event.lanes] != self.warp_of_lane[event.lanes[winner]]
        same = apart & (new == new[winner]).all(axis=1)
        unchanged: Array = (new == old).all(axis=1)
        columns, times = self.plain_write_times(event)
        ordered = (times == 0) | happens_before(np.arange(len(times)), columns, times)
        return same | (unchanged & ~ordered), unchanged

    def _conflict_with_plain_write(
        self, event: AccessEvent, happens_before: HappensBefore, floor: int
    ) -> Conflict | None:
        columns, times = self.plain_write_times(event)
        if times.max() <= floor or event.kind == SAME:
            return None
        at = np.flatnonzero(times > 0)
        times, columns = times[at], columns[at]
        ordered = happens_before(at, columns, times)
        if ordered.all():
            return None
        unordered = at[~ordered]
        if event.kind in (READ, SYNC_READ) and (self.since[event.granules[unordered]] & SAME).any():
            # A read after one of several writes of the same value finds it.
            element, found = self.log.find(event.granules[unordered], SAME)
            after = happens_before(unordered[element], found.column, found.time)
            unordered = np.setdiff1d(unordered, unordered[element[after]])
        if len(unordered) and self.harmless is not None and event.kind == READ:
            part, at = event.part(unordered, READ), event.granules[unordered]
            unordered = unordered[
                ~self.harmless.after_store(part, self.thread[at], self.access_id[at], self.accesses)
            ]
        if not len(unordered):
            return None
        first = int(unordered[0])
        return Conflict(first, *self.last_plain_write(event.granules[first]))

    def plain_write_times(self, event: AccessEvent) -> tuple[Array, Array]:
        """Return the column and the time of the last plain write of each element; time 0: none."""
        return self.column[event.granules], self.time[event.granules]

    def last_plain_write(self, granule: int) -> tuple[MemoryAccess, int]:
        """Return the last plain write of a granule, and its thread."""
        access = self.accesses[self.access_id[granule]]
        assert access is not None
        return access, int(self.thread[granule])

    def write_times(self, event: AccessEvent) -> tuple[Array, Array]:
        """Return the column and the time of the last write of any kind of each element."""
        columns, times = self.plain_write_times(event)
        synced = self.sync_access_id[event.granules] > self.access_id[event.granules]
        if not synced.any():
            return columns, times
        return (
            np.where(synced, self.sync_column[event.granules], columns),
            np.where(synced, self.sync_time[event.granules], times),
        )

    def last_write(self, granule: int) -> tuple[MemoryAccess, int]:
        """Return the last write of any kind of a granule, and its thread."""
        if self.sync_access_id[granule] <= self.access_id[granule]:
            return self.last_plain_write(granule)
        access = self.accesses[self.sync_access_id[granule]]
        assert access is not None
        return access, int(self.sync_thread[granule])

    def _conflict_with_logged(
        self, event: AccessEvent, happens_before: HappensBefore, floor: int, kinds: int
    ) -> Conflict | None:
        if not (self.since[event.granules] & kinds).any():
            return None
        if self.latest[event.granules].max() <= floor:
            return None
        element, found = self.log.find(event.granules, kinds)
        ordered = happens_before(element, found.column, found.time)
        if not ordered.all() and self.harmless is not None:
            ordered |= self.harmless.before_write(event, element, found, self.accesses)
        if ordered.all():
            return None
        first = int(np.argmin(ordered))
        access = self.accesses[found.access_id[first]]
        assert access is not None
        return Conflict(int(element[first]), access, int(found.thread[first]))

    def _conflict_within(self, event: AccessEvent) -> Conflict | None:
        """Return the conflict of different warps that write one granule by one instruction."""
        self.winner[event.granules] = event.lanes
        last = self.winner[event.granules]
        apart = self.warp_of_lane[last] != self.warp_of_lane[event.lanes]
        if not apart.any():
            return None
        first = int(np.argmax(apart))
        return Conflict(
            first, event.access, int(event.threads[np.argmax(event.lanes == last[first])])
        )

    # --- recording ---

    def record(self, event: AccessEvent, new: Callable[[], Array | None] = lambda: None) -> None:
        """Store an event.

        Args:
            event: the access.
            new: returns the bytes that each element of a plain write writes, if they are known.
        """
        granules, access_id = event.granules, len(self.accesses)
        self.accesses.append(event.access)
        if event.access.writes:
            self.written[granules] = True
        if event.kind == WRITE:
            self.time[granules] = event.time
            self.access_id[granules] = access_id
            self.thread[granules] = event.threads
            self.column[granules] = event.columns
            if self.since[granules].any():
                self.since[granules] = 0
                self.latest[granules] = 0
            overwritten = self.thread[granules] != event.threads
            if overwritten.any():
                self._record_overwritten(event, overwritten, new())
            return
        if event.kind == SYNC_WRITE:
            self.sync_time[granules] = event.time
            self.sync_access_id[granules] = access_id
            self.sync_thread[granules] = event.threads
            self.sync_column[granules] = event.columns
        self.since[granules] |= event.kind
        self.latest[granules] = np.maximum(self.latest[granules], event.time)
        self.log.add(event, access_id)

    def _record_overwritten(self, event: AccessEvent, losers: Array, new: Array | None) -> None:
        """Store the elements that another lane of their warp overwrites by the same instruction."""
        same = np.zeros(len(losers), np.bool_)
        if new is not None:
            same = losers & (new == new[_winners(event.granules)]).all(axis=1)
        for chosen, kind in ((losers & ~same, OVERWRITTEN), (same, SAME)):
            if chosen.any():
                self.record(event.part(chosen, kind))


def _winners(granules: Array) -> Array:
    """Return, for each element, the last one with the same granule."""
    _, first, group = np.unique(granules[::-1], return_index=True, return_inverse=True)
    winners: Array = len(granules) - 1 - first[group][::-1]
    return winners
