"""Accesses of shared memory since the last plain write of each granule.

Source: C. Flanagan, S. Freund, FastTrack, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.checks.races.shadow_memory import ShadowMemory

WRITE, READ, SYNC_READ, SYNC_WRITE, OVERWRITTEN, SAME = 0, 1, 2, 4, 8, 16
"""Kinds of accesses, as bits; a plain write is 0. A write is OVERWRITTEN if another lane of its
warp writes the same address by the same instruction, and wins. It is the SAME as the last plain
write if nothing orders the two and they write the same value."""

_MAX_RECENT = 1 << 20
_MANY_EVENTS = 256


@dataclass(frozen=True, slots=True, eq=False)
class AccessEvent:
    """An access by many lanes at once, granule by granule.

    Attributes:
        access: the instruction's access.
        granules, lanes, columns: for each element the granule, the lane on whose behalf it is
            accessed, and the vector-clock column of the agent.
        threads: what is stored of the lanes: the lanes, or the numbers of their threads in the
            launch.
        time: the time of the access.
        kind: a bit, or 0 for a plain write.
    """

    access: MemoryAccess
    granules: Array
    lanes: Array
    columns: Array
    threads: Array
    time: int
    kind: int

    @staticmethod
    def of(
        access: MemoryAccess,
        granules: Array,
        lanes: Array,
        columns: Array,
        time: int,
        threads: Array | None = None,
    ) -> AccessEvent:
        plain, sync = (WRITE, SYNC_WRITE) if access.writes else (READ, SYNC_READ)
        kind = sync if access.sync else plain
        stored = lanes if threads is None else threads
        return AccessEvent(access, granules, lanes, columns, stored, time, kind)

    def part(self, chosen: Array, kind: int) -> AccessEvent:
        """Return some elements of the event, as accesses of a kind."""
        return AccessEvent(
            self.access,
            self.granules[chosen],
            self.lanes[chosen],
            self.columns[chosen],
            self.threads[chosen],
            self.time,
            kind,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Elements of access events, as columns."""

    granule: Array
    thread: Array
    column: Array
    time: Array
    access_id: Array
    kind: Array

    @staticmethod
    def of(event: AccessEvent, access_id: int, chosen: Array | slice = slice(None)) -> Records:
        """Return some elements of an event."""
        granules = event.granules[chosen]
        times, access_ids, kinds = (
            np.full(len(granules), x) for x in (event.time, access_id, event.kind)
        )
        return Records(
            granules, event.threads[chosen], event.columns[chosen], times, access_ids, kinds
        )

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
        forgotten: the time up to which accesses have been dropped.
    """

    def __init__(self, shadow: ShadowMemory) -> None:
        self.shadow = shadow
        self.forgotten = 0
        self._clear()

    def _clear(self) -> None:
        self.sorted_records = Records(*np.zeros((6, 0), np.int64))
        self.recent: list[tuple[AccessEvent, int]] = []
        self.recent_count = self.latest = 0

    def add(self, event: AccessEvent, access_id: int) -> None:
        """Add an event."""
        # A few large events are soon forgotten; many take long to search.
        most = _MAX_RECENT if len(self.recent) < _MANY_EVENTS else _MAX_RECENT >> 4
        if self.recent_count > max(most, len(self.sorted_records.granule)):
            self._sort()
        self.recent.append((event, access_id))
        self.recent_count += len(event.granules)
        self.latest = max(self.latest, event.time)

    def forget(self, horizon: int) -> None:
        """Drop the accesses up to a time, which happened before all accesses to come."""
        if horizon <= self.forgotten:
            return
        self.forgotten = horizon
        if self.latest <= horizon:
            self._clear()
            return
        self.recent = [entry for entry in self.recent if entry[0].time > horizon]
        self.recent_count = sum(len(event.granules) for event, _ in self.recent)

    def _sort(self) -> None:
        """Sort the recent events in, and drop accesses before the last write of their granule.

        For each agent, granule and kind, only the last access is kept.
        """
        found = Records.joined(
            [self.sorted_records, *(Records.of(*entry) for entry in self.recent)]
        )
        found = found[found.access_id > self.shadow.access_id[found.granule]]
        order = np.lexsort((-found.time, found.kind, found.column, found.granule))
        found = found[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = False
        for of_kind in (found.granule, found.column, found.kind):
            first[1:] |= of_kind[1:] != of_kind[:-1]
        self.sorted_records = found[first]
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
