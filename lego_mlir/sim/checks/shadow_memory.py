"""The shadow of shared memory: who has touched each place last, and who since its last write.

The shadow knows *granules*, as wide as the narrowest access so far. Of each it keeps the last write
and, in a log, all other accesses since. An access conflicts with what it finds there if one of the
two writes, unless both synchronise (atomics, accesses of mbarriers). Whether a conflict is a race
is asked of whoever knows what orders the two (`Knows`).

That the log may forget what came before the last write of a place, and what every thread knows of,
is since whoever is not ordered after those is not ordered after these (FastTrack).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lego_mlir.sim.machine.memory import Access
from lego_mlir.sim.ptx.types import Array

_WIDEST = 16
_WRITE, _READ, _SYNC_READ, _SYNC_WRITE, _LOST, _KINDS = 0, 1, 2, 4, 8, 16
"""Kinds of accesses, as bits; that of a plain write is none of them. A write is lost where another
lane of its warp writes the same place by the same instruction, and wins."""

_CONFLICTING = {
    _WRITE: _READ | _SYNC_READ | _SYNC_WRITE | _LOST,
    _READ: _SYNC_WRITE | _LOST,
    _SYNC_READ: _LOST,
    _SYNC_WRITE: _READ | _LOST,
}
"""Kinds since the last plain write with which an access of a kind conflicts."""

_CROWDED = 1 << 16

Knows = Callable[[Array, Array, Array], Array]
"""Whether the actors of these elements of an act know what those of columns did at times."""


@dataclass(frozen=True, slots=True, eq=False)
class Act:
    """An access by many lanes at once, granule by granule.

    Attributes:
        access: what it is.
        granules, lanes, columns: where, for which lanes, and the columns of the actors.
        time: when.
        kind: a bit, or 0 for a plain write.
    """

    access: Access
    granules: Array
    lanes: Array
    columns: Array
    time: int
    kind: int

    @staticmethod
    def of(access: Access, granules: Array, lanes: Array, columns: Array, time: int) -> Act:
        plain, sync = (_WRITE, _SYNC_WRITE) if access.writes else (_READ, _SYNC_READ)
        return Act(access, granules, lanes, columns, time, sync if access.sync else plain)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses of one granule that nothing orders.

    Attributes:
        at: number of the element of the act.
        access, lane: the earlier one.
    """

    at: int
    access: Access
    lane: int


class Shadow:
    """The shadow of a wave's shared memory.

    Attributes:
        granule: bytes of one.
        written: whether anything has been written there.
        time, turn, lane, column: of the last plain write: when, by which access of all, for whom
            and by whom. Turn 0: there was none.
        sync_time, sync_turn, sync_lane, sync_column: the same of the last write that synchronises.
        since: the kinds of all accesses since, as bits.
        latest: the time of the last of those.
        accesses: of each turn.
    """

    PER_GRANULE = (
        *("written", "time", "turn", "lane", "column", "since", "latest"),
        *("sync_time", "sync_turn", "sync_lane", "sync_column"),
    )

    def __init__(self, size: int, stride: int, warp_of_lane: Array) -> None:
        count = size // _WIDEST
        self.stride = stride
        self.warp_of_lane = warp_of_lane
        self.granule = _WIDEST
        self.written = np.zeros(count, np.bool_)
        self.time, self.turn, self.lane, self.column, self.latest = np.zeros((5, count), np.int32)
        self.sync_time, self.sync_turn, self.sync_lane, self.sync_column = np.zeros(
            (4, count), np.int32
        )
        self.since = np.zeros(count, np.uint8)
        self.accesses: list[Access | None] = [None]
        self.log = Log(self)

    def granules(self, access: Access, index: Array, lanes: Array) -> tuple[Array, Array]:
        """The granules of an access, and the lane of each; first of all narrow enough ones."""
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

    def block(self, granules: Array) -> Array:
        """The slots of the blocks in whose shared memory granules lie."""
        slots: Array = granules * self.granule // self.stride
        return slots

    def byte(self, granule: int) -> int:
        """Where a granule begins in the shared memory of its block."""
        return granule * self.granule % self.stride

    # --- asking ---

    def unwritten(self, act: Act) -> int | None:
        """The first element whose place nothing has been written to."""
        written = self.written[act.granules]
        return None if written.all() else int(np.argmin(written))

    def conflict(self, act: Act, knows: Knows, floor: int) -> Conflict | None:
        """A place that another actor has touched, with nothing that orders the two.

        Args:
            act: what is about to be done.
            knows: tells what is ordered.
            floor: up to which time all that lanes did themselves is known to all actors.
        """
        return (
            self._with_write(act, knows, floor)
            or self._with_others(act, knows, floor)
            or (self._within(act) if act.kind == _WRITE else None)
        )

    def _with_write(self, act: Act, knows: Knows, floor: int) -> Conflict | None:
        columns, times = self.writes(act)
        if times.max() <= floor:
            return None
        at = np.flatnonzero(times > 0)
        times, columns = times[at], columns[at]
        known = knows(at, columns, times)
        if known.all():
            return None
        first = int(at[np.argmin(known)])
        return Conflict(first, *self.writer(act.granules[first]))

    def writes(self, act: Act) -> tuple[Array, Array]:
        """By whom (as columns) and when each element's place was last plainly written; 0: never."""
        return self.column[act.granules], self.time[act.granules]

    def writer(self, granule: int) -> tuple[Access, int]:
        """The last plain write of a granule, and the lane for which it was made."""
        access = self.accesses[self.turn[granule]]
        assert access is not None
        return access, int(self.lane[granule])

    def changes(self, act: Act) -> tuple[Array, Array]:
        """By whom and when each element's place was last written, plainly or not; 0: never."""
        columns, times = self.writes(act)
        synced = self.sync_turn[act.granules] > self.turn[act.granules]
        if not synced.any():
            return columns, times
        return (
            np.where(synced, self.sync_column[act.granules], columns),
            np.where(synced, self.sync_time[act.granules], times),
        )

    def changer(self, granule: int) -> tuple[Access, int]:
        """The last write of a granule, plain or not, and the lane for which it was made."""
        if self.sync_turn[granule] <= self.turn[granule]:
            return self.writer(granule)
        access = self.accesses[self.sync_turn[granule]]
        assert access is not None
        return access, int(self.sync_lane[granule])

    def _with_others(self, act: Act, knows: Knows, floor: int) -> Conflict | None:
        kinds = _CONFLICTING[act.kind]
        if not (self.since[act.granules] & kinds).any():
            return None
        if self.latest[act.granules].max() <= floor:
            return None
        element, found = self.log.find(act.granules, kinds)
        known = knows(element, found.column, found.time)
        if known.all():
            return None
        first = int(np.argmin(known))
        access = self.accesses[found.turn[first]]
        assert access is not None
        return Conflict(int(element[first]), access, int(found.lane[first]))

    def _within(self, act: Act) -> Conflict | None:
        """Different warps that write the same place at once."""
        self.lane[act.granules] = act.lanes
        last = self.lane[act.granules]
        apart = self.warp_of_lane[last] != self.warp_of_lane[act.lanes]
        if not apart.any():
            return None
        first = int(np.argmax(apart))
        return Conflict(first, act.access, int(last[first]))

    # --- recording ---

    def record(self, act: Act, floor: int) -> None:
        """The act is done; `floor` as for `conflict`, for all lanes of the wave."""
        granules, turn = act.granules, len(self.accesses)
        self.accesses.append(act.access)
        if act.access.writes:
            self.written[granules] = True
        if act.kind == _WRITE:
            self.time[granules] = act.time
            self.turn[granules] = turn
            self.lane[granules] = act.lanes
            self.column[granules] = act.columns
            if self.since[granules].any():
                self.since[granules] = 0
                self.latest[granules] = 0
            lost = self.lane[granules] != act.lanes
            if lost.any():
                lanes, columns = act.lanes[lost], act.columns[lost]
                self.record(Act(act.access, granules[lost], lanes, columns, act.time, _LOST), floor)
            return
        if act.kind == _SYNC_WRITE:
            self.sync_time[granules] = act.time
            self.sync_turn[granules] = turn
            self.sync_lane[granules] = act.lanes
            self.sync_column[granules] = act.columns
        self.since[granules] |= act.kind
        self.latest[granules] = np.maximum(self.latest[granules], act.time)
        self.log.forget(floor)
        self.log.add(act, turn)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Elements of acts."""

    granule: Array
    lane: Array
    column: Array
    time: Array
    turn: Array
    kind: Array

    @staticmethod
    def of(act: Act, turn: int, chosen: Array | slice = slice(None)) -> Records:
        """Some elements of an act."""
        granules, lanes, columns = act.granules[chosen], act.lanes[chosen], act.columns[chosen]
        times, turns, kinds = (np.full(len(lanes), x) for x in (act.time, turn, act.kind))
        return Records(granules, lanes, columns, times, turns, kinds)

    @staticmethod
    def joined(parts: Sequence[Records]) -> Records:
        columns = [[getattr(part, f.name) for part in parts] for f in fields(Records)]
        return Records(*map(np.concatenate, columns))

    def __getitem__(self, chosen: Array | slice) -> Records:
        return Records(*[getattr(self, f.name)[chosen] for f in fields(self)])


class Log:
    """All accesses but plain writes that a plain write may still have to be ordered after.

    Attributes:
        shelf: most of them, ordered by granule.
        fresh: those since, with their turns; `loose` elements together.
        latest: the time of the last.
    """

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self._clear()

    def _clear(self) -> None:
        self.shelf = Records(*np.zeros((6, 0), np.int64))
        self.fresh: list[tuple[Act, int]] = []
        self.loose = self.latest = 0

    def add(self, act: Act, turn: int) -> None:
        """Write an act down."""
        if self.loose > max(_CROWDED, len(self.shelf.granule)):
            self._sort()
        self.fresh.append((act, turn))
        self.loose += len(act.granules)
        self.latest = max(self.latest, act.time)

    def forget(self, floor: int) -> None:
        """Every thread knows what happened until then."""
        if self.fresh and self.latest <= floor:
            self._clear()

    def _sort(self) -> None:
        """Put everything on the shelf but what came before the last write of its place.

        Of one actor's accesses of a place in one way only the last matters.
        """
        found = Records.joined([self.shelf, *(Records.of(*entry) for entry in self.fresh)])
        alive = np.flatnonzero(found.turn > self.shadow.turn[found.granule])
        latest_first = alive[np.argsort(-found.time[alive], kind="stable")]
        granules, columns = found.granule[latest_first], found.column[latest_first]
        keys = (granules * (int(columns.max(initial=0)) + 1) + columns) * _KINDS
        kept = np.unique(keys + found.kind[latest_first], return_index=True)[1]
        self.shelf = found[latest_first[kept]]
        self.fresh, self.loose = [], 0

    def halve(self) -> None:
        """Each granule becomes two."""
        self._sort()
        lower = replace(self.shelf, granule=2 * self.shelf.granule)
        both = Records.joined([lower, replace(lower, granule=lower.granule + 1)])
        self.shelf = both[np.argsort(both.granule, kind="stable")]

    def find(self, granules: Array, kinds: int) -> tuple[Array, Records]:
        """What was done to granules in any of these ways since their last writes.

        Returns:
            Numbers of elements of `granules`, and a record for each: all pairs of one granule.
        """
        found = self._about(granules, kinds)
        order = np.argsort(granules, kind="stable")
        ordered = granules[order]
        first = np.searchsorted(ordered, found.granule, "left")
        count = np.searchsorted(ordered, found.granule, "right") - first
        which = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return order[first[which] + within], found[which]

    def _about(self, granules: Array, kinds: int) -> Records:
        asked = np.zeros(len(self.shadow.written), np.bool_)
        asked[granules] = True
        low, high = np.searchsorted(self.shelf.granule, [granules.min(), granules.max() + 1])
        shelf = self.shelf[low:high]
        parts = [shelf[np.flatnonzero(asked[shelf.granule] & (shelf.kind & kinds != 0))]]
        for act, turn in self.fresh:
            if act.kind & kinds and len(chosen := np.flatnonzero(asked[act.granules])):
                parts.append(Records.of(act, turn, chosen))
        found = Records.joined(parts)
        return found[found.turn > self.shadow.turn[found.granule]]
