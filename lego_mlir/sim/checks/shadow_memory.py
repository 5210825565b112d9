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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.ptx.types import Array

_WIDEST = 16
_WRITE, _READ, _SYNC_READ, _SYNC_WRITE, _OVERWRITTEN, _KINDS = 0, 1, 2, 4, 8, 16
"""Kinds of accesses, as bits; a plain write is 0. A write is overwritten if another lane of its
warp writes the same address by the same instruction, and wins."""

_CONFLICTING = {
    _WRITE: _READ | _SYNC_READ | _SYNC_WRITE | _OVERWRITTEN,
    _READ: _SYNC_WRITE | _OVERWRITTEN,
    _SYNC_READ: _OVERWRITTEN,
    _SYNC_WRITE: _READ | _OVERWRITTEN,
}
"""For each kind of access, the kinds since the last plain write that conflict with it."""

_MAX_RECENT = 1 << 16

HappensBefore = Callable[[Array, Array, Array], Array]
"""Whether the accesses of columns at times happen before these elements of an event."""


@dataclass(frozen=True, slots=True, eq=False)
class AccessEvent:
    """An access by many lanes at once, granule by granule.

    Attributes:
        access: the instruction's access.
        granules, lanes, columns: for each element the granule, the lane on whose behalf it is
            accessed, and the vector-clock column of the agent.
        time: the time of the access.
        kind: a bit, or 0 for a plain write.
    """

    access: MemoryAccess
    granules: Array
    lanes: Array
    columns: Array
    time: int
    kind: int

    @staticmethod
    def of(
        access: MemoryAccess, granules: Array, lanes: Array, columns: Array, time: int
    ) -> AccessEvent:
        plain, sync = (_WRITE, _SYNC_WRITE) if access.writes else (_READ, _SYNC_READ)
        return AccessEvent(access, granules, lanes, columns, time, sync if access.sync else plain)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two unordered accesses of one granule.

    Attributes:
        at: index of the element of the event.
        access, lane: the earlier access.
    """

    at: int
    access: MemoryAccess
    lane: int


class ShadowMemory:
    """The shadow memory of a wave.

    Attributes:
        granule: bytes of a granule.
        written: whether the granule has been written.
        time, access_id, lane, column: the last plain write: its time, its index in `accesses` (0:
            there was none), its lane, and the column of its agent.
        sync_time, sync_access_id, sync_lane, sync_column: the last synchronizing write.
        since: the kinds of all accesses since the last plain write, as bits.
        latest: the latest time of those.
        accesses: all accesses, by id.
    """

    PER_GRANULE = (
        *("written", "time", "access_id", "lane", "column", "since", "latest"),
        *("sync_time", "sync_access_id", "sync_lane", "sync_column"),
    )

    def __init__(self, size: int, stride: int, warp_of_lane: Array) -> None:
        count = size // _WIDEST
        self.stride = stride
        self.warp_of_lane = warp_of_lane
        self.granule = _WIDEST
        self.written = np.zeros(count, np.bool_)
        self.time, self.access_id, self.lane, self.column, self.latest = np.zeros(
            (5, count), np.int32
        )
        self.sync_time, self.sync_access_id, self.sync_lane, self.sync_column = np.zeros(
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
        self, event: AccessEvent, happens_before: HappensBefore, floor: int
    ) -> Conflict | None:
        """Return an earlier access that races with an event, if there is one.

        Args:
            event: the new access.
            happens_before: decides which earlier accesses happen before it.
            floor: accesses of lanes up to this time happen before it.
        """
        return (
            self._conflict_with_plain_write(event, happens_before, floor)
            or self._conflict_with_logged(event, happens_before, floor)
            or (self._conflict_within(event) if event.kind == _WRITE else None)
        )

    def _conflict_with_plain_write(
        self, event: AccessEvent, happens_before: HappensBefore, floor: int
    ) -> Conflict | None:
        columns, times = self.plain_write_times(event)
        if times.max() <= floor:
            return None
        at = np.flatnonzero(times > 0)
        times, columns = times[at], columns[at]
        ordered = happens_before(at, columns, times)
        if ordered.all():
            return None
        first = int(at[np.argmin(ordered)])
        return Conflict(first, *self.last_plain_write(event.granules[first]))

    def plain_write_times(self, event: AccessEvent) -> tuple[Array, Array]:
        """Return the column and the time of the last plain write of each element; time 0: none."""
        return self.column[event.granules], self.time[event.granules]

    def last_plain_write(self, granule: int) -> tuple[MemoryAccess, int]:
        """Return the last plain write of a granule, and its lane."""
        access = self.accesses[self.access_id[granule]]
        assert access is not None
        return access, int(self.lane[granule])

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
        """Return the last write of any kind of a granule, and its lane."""
        if self.sync_access_id[granule] <= self.access_id[granule]:
            return self.last_plain_write(granule)
        access = self.accesses[self.sync_access_id[granule]]
        assert access is not None
        return access, int(self.sync_lane[granule])

    def _conflict_with_logged(
        self, event: AccessEvent, happens_before: HappensBefore, floor: int
    ) -> Conflict | None:
        kinds = _CONFLICTING[event.kind]
        if not (self.since[event.granules] & kinds).any():
            return None
        if self.latest[event.granules].max() <= floor:
            return None
        element, found = self.log.find(event.granules, kinds)
        ordered = happens_before(element, found.column, found.time)
        if ordered.all():
            return None
        first = int(np.argmin(ordered))
        access = self.accesses[found.access_id[first]]
        assert access is not None
        return Conflict(int(element[first]), access, int(found.lane[first]))

    def _conflict_within(self, event: AccessEvent) -> Conflict | None:
        """Return the conflict of different warps that write one granule by one instruction."""
        self.lane[event.granules] = event.lanes
        last = self.lane[event.granules]
        apart = self.warp_of_lane[last] != self.warp_of_lane[event.lanes]
        if not apart.any():
            return None
        first = int(np.argmax(apart))
        return Conflict(first, event.access, int(last[first]))

    # --- recording ---

    def record(self, event: AccessEvent, floor: int) -> None:
        """Store an event; `floor` as for `conflict`, for all lanes of the wave."""
        granules, access_id = event.granules, len(self.accesses)
        self.accesses.append(event.access)
        if event.access.writes:
            self.written[granules] = True
        if event.kind == _WRITE:
            self.time[granules] = event.time
            self.access_id[granules] = access_id
            self.lane[granules] = event.lanes
            self.column[granules] = event.columns
            if self.since[granules].any():
                self.since[granules] = 0
                self.latest[granules] = 0
            overwritten = self.lane[granules] != event.lanes
            if overwritten.any():
                lanes, columns = event.lanes[overwritten], event.columns[overwritten]
                self.record(
                    AccessEvent(
                        event.access,
                        granules[overwritten],
                        lanes,
                        columns,
                        event.time,
                        _OVERWRITTEN,
                    ),
                    floor,
                )
            return
        if event.kind == _SYNC_WRITE:
            self.sync_time[granules] = event.time
            self.sync_access_id[granules] = access_id
            self.sync_lane[granules] = event.lanes
            self.sync_column[granules] = event.columns
        self.since[granules] |= event.kind
        self.latest[granules] = np.maximum(self.latest[granules], event.time)
        self.log.forget(floor)
        self.log.add(event, access_id)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Elements of access events, as columns."""

    granule: Array
    lane: Array
    column: Array
    time: Array
    access_id: Array
    kind: Array

    @staticmethod
    def of(event: AccessEvent, access_id: int, chosen: Array | slice = slice(None)) -> Records:
        """Return some elements of an event."""
        granules, lanes, columns = (
            event.granules[chosen],
            event.lanes[chosen],
            event.columns[chosen],
        )
        times, access_ids, kinds = (
            np.full(len(lanes), x) for x in (event.time, access_id, event.kind)
        )
        return Records(granules, lanes, columns, times, access_ids, kinds)

    @staticmethod
    def joined(records: Sequence[Records]) -> Records:
        columns = [[getattr(part, f.name) for part in records] for f in fields(Records)]
        return Records(*map(np.concatenate, columns))

    def __getitem__(self, chosen: Array | slice) -> Records:
        return Records(*[getattr(self, f.name)[chosen] for f in fields(self)])


class Log:
    """The accesses since the last plain write of each granule, without plain writes.

    Attributes:
        sorted_records: most of them, ordered by granule.
        recent: the later ones, with their access ids; `recent_count` elements in all.
        latest: the time of the last.
    """

    def __init__(self, shadow: ShadowMemory) -> None:
        self.shadow = shadow
        self._clear()

    def _clear(self) -> None:
        self.sorted_records = Records(*np.zeros((6, 0), np.int64))
        self.recent: list[tuple[AccessEvent, int]] = []
        self.recent_count = self.latest = 0

    def add(self, event: AccessEvent, access_id: int) -> None:
        """Add an event."""
        if self.recent_count > max(_MAX_RECENT, len(self.sorted_records.granule)):
            self._sort()
        self.recent.append((event, access_id))
        self.recent_count += len(event.granules)
        self.latest = max(self.latest, event.time)

    def forget(self, floor: int) -> None:
        """Clear the log if all its accesses happened before all threads (up to `floor`)."""
        if self.recent and self.latest <= floor:
            self._clear()

    def _sort(self) -> None:
        """Sort the recent events in, and drop accesses before the last write of their granule.

        For each agent, granule and kind, only the last access is kept.
        """
        found = Records.joined(
            [self.sorted_records, *(Records.of(*entry) for entry in self.recent)]
        )
        alive = np.flatnonzero(found.access_id > self.shadow.access_id[found.granule])
        latest_first = alive[np.argsort(-found.time[alive], kind="stable")]
        granules, columns = found.granule[latest_first], found.column[latest_first]
        keys = (granules * (int(columns.max(initial=0)) + 1) + columns) * _KINDS
        kept = np.unique(keys + found.kind[latest_first], return_index=True)[1]
        self.sorted_records = found[latest_first[kept]]
        self.recent, self.recent_count = [], 0

    def halve(self) -> None:
        """Split each granule in two."""
        self._sort()
        lower = replace(self.sorted_records, granule=2 * self.sorted_records.granule)
        both = Records.joined([lower, replace(lower, granule=lower.granule + 1)])
        self.sorted_records = both[np.argsort(both.granule, kind="stable")]

    def find(self, granules: Array, kinds: int) -> tuple[Array, Records]:
        """Return the accesses of granules, of these kinds, since their last writes.

        Returns:
            Indices into `granules`, and a record for each: all pairs with the same granule.
        """
        found = self._matching(granules, kinds)
        order = np.argsort(granules, kind="stable")
        ordered = granules[order]
        first = np.searchsorted(ordered, found.granule, "left")
        count = np.searchsorted(ordered, found.granule, "right") - first
        which = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return order[first[which] + within], found[which]

    def _matching(self, granules: Array, kinds: int) -> Records:
        marked = np.zeros(len(self.shadow.written), np.bool_)
        marked[granules] = True
        low, high = np.searchsorted(
            self.sorted_records.granule, [granules.min(), granules.max() + 1]
        )
        sorted_records = self.sorted_records[low:high]
        records = [
            sorted_records[
                np.flatnonzero(marked[sorted_records.granule] & (sorted_records.kind & kinds != 0))
            ]
        ]
        for event, access_id in self.recent:
            if event.kind & kinds and len(chosen := np.flatnonzero(marked[event.granules])):
                records.append(Records.of(event, access_id, chosen))
        found = Records.joined(records)
        return found[found.access_id > self.shadow.access_id[found.granule]]
