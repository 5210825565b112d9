"""The happens-before relation of a wave: vector clocks, with shared rows.

An access happens before another if a chain of synchronizations leads from the first to the second.
Time is a counter that every synchronization increments. Each *agent* has a column (a component of
the vector clock): a lane has one for its own accesses and further ones for asynchronous operations
on its behalf (copies, wgmma), which happen before the lane's accesses only after a wait. A *row* is
a vector clock: it holds, for each column, the time up to which that agent's accesses happened
before.

Lanes that synchronized have the same clock, so rows are shared and immutable. A lane's clock is the
id of a row and the time of the lane's own accesses (see `ClockSnapshot`). A CTA barrier makes one
row, however many threads arrive.

If the kernel uses the asynchronous proxy, clocks are kept for two proxies: GENERIC holds the
happens-before relation, ASYNC the part of it that passed a `fence.proxy.async` on the way.

Source: PTX ISA 8 (causality order); C. Flanagan, S. Freund, FastTrack, 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.checks.races.launch_clocks import LaunchClocks
    from lego_mlir.sim.machine.wave import Wave

GENERIC, ASYNC = 0, 1
"""The proxies: happens-before, and the part of it that is visible to the asynchronous proxy."""
FIRST_ASYNC_TIME = 1 << 30
"""Times of asynchronous operations start here, above any floor (see `VectorClocks`)."""
_MIN_ROWS = 256


class ClockTable:
    """Vector clocks by row id; row 0 is the clock that orders nothing.

    Attributes:
        times: the rows, (capacity, columns).
        floor: the minimum of each row over the first `local` columns, those of the lanes.
        views: what each row knows of other clusters, as numbers of views of `launch`.
        launch: the views of other clusters; None: they are not tracked.
    """

    def __init__(self, local: int) -> None:
        self.local = local
        self.times = np.zeros((_MIN_ROWS, local), np.int32)
        self.floor = np.zeros(_MIN_ROWS, np.int32)
        self.views = np.zeros(_MIN_ROWS, np.int64)
        self.launch: LaunchClocks | None = None
        self.free = np.arange(1, _MIN_ROWS)
        self.limit = _MIN_ROWS

    @property
    def needs_collection(self) -> bool:
        """Return whether so many rows are in use that `collect` should run."""
        return len(self.times) - len(self.free) > self.limit

    def collect(self, live: Iterable[Array]) -> None:
        """Free all rows except those whose ids `live` holds."""
        used = np.zeros(len(self.times), np.bool_)
        used[0] = True
        for numbers in live:
            used[numbers] = True
        self.free = np.flatnonzero(~used)
        self.limit = max(_MIN_ROWS, 2 * int(used.sum()))

    def add_columns(self, columns: int) -> None:
        """Add `columns` columns whose times are 0."""
        self.times = np.pad(self.times, [(0, 0), (0, columns)])

    def add(self, rows: Array, views: Array | int = 0) -> Array:
        """Add rows, with their views, and return their ids."""
        count, size = len(rows), len(self.times)
        if count > len(self.free):
            more = max(size, count)
            self.times = np.pad(self.times, [(0, more), (0, 0)])
            self.floor = np.pad(self.floor, (0, more))
            self.views = np.pad(self.views, (0, more))
            self.free = np.append(self.free, np.arange(size, size + more))
        numbers, self.free = self.free[:count], self.free[count:]
        self.times[numbers] = rows
        self.floor[numbers] = rows[:, : self.local].min(axis=1)
        self.views[numbers] = views
        return numbers

    def join(self, a: Array, b: Array) -> Array:
        """Return the ids of the element-wise joins (maxima) of the rows `a` and `b`."""
        if not b.any():
            return a
        pairs, which = np.unique(a * len(self.times) + b, return_inverse=True)
        first, second = np.divmod(pairs, len(self.times))
        views = self.views[second]
        return self._advanced(first, self.times[second], views)[which].reshape(a.shape)

    def advanced(self, numbers: Array, columns: Array, times: Array) -> Array:
        """Return the ids of the rows `numbers` with one column each advanced to a time."""
        width, latest = self.times.shape[1], int(times.max()) + 1
        keys = (numbers * width + columns) * latest + times
        keys, which = np.unique(keys, return_inverse=True)
        more = np.zeros((len(keys), width), np.int32)
        more[np.arange(len(keys)), keys // latest % width] = keys % latest
        return self._advanced(keys // latest // width, more)[which]

    def _advanced(self, numbers: Array, more: Array, more_views: Array | None = None) -> Array:
        """Return the ids of the joins of rows with `more`; unchanged rows keep their ids."""
        before, views = self.times[numbers], self.views[numbers]
        both = np.maximum(before, more)
        fresh = (both != before).any(axis=1)
        if self.launch is not None and more_views is not None:
            joined = self.launch.joins(views, more_views)
            fresh, views = fresh | (joined != views), joined
        if fresh.any():
            numbers = numbers.copy()
            numbers[fresh] = self.add(both[fresh], views[fresh])
        return numbers


@dataclass(frozen=True, slots=True)
class ClockSnapshot:
    """The vector clocks of all lanes at some time.

    The arrays have the shape (proxies, lanes) and are never changed in place.

    Attributes:
        own: the time of the lane's own accesses.
        copies: the time of the latest `cp.async` that the lane issued and waited for.
        rows: the id of the row with all other columns.
    """

    own: Array
    copies: Array
    rows: Array

    def where(self, mask: Array, other: ClockSnapshot) -> ClockSnapshot:
        """Return this snapshot in the lanes of `mask` and `other` in the rest."""
        return ClockSnapshot(
            np.where(mask, self.own, other.own),
            np.where(mask, self.copies, other.copies),
            np.where(mask, self.rows, other.rows),
        )


class VectorClocks:
    """The current vector clocks of a wave's lanes.

    Attributes:
        now: the current time.
        snapshot: the current clocks.
        floor: accesses of lanes up to this time happened before the next access of every living
            lane of their cluster.
        local: the number of lanes of a cluster, and of columns for their own accesses.
    """

    def __init__(self, wave: Wave, proxy_count: int) -> None:
        self.wave = wave
        self.proxy_count = proxy_count
        self.local = wave.threads * wave.cluster_size
        self.bases: dict[str, int] = {}
        self.rows = ClockTable(self.local)
        self.now = 1
        initial = np.zeros((proxy_count, wave.lanes), np.int64)
        self.initial = self.snapshot = ClockSnapshot(initial, initial, initial)
        self.floor = 0
        self.tick()

    # --- columns ---

    def column_of(self, lanes: Array) -> Array:
        """Return the columns of the lanes' own accesses."""
        found: Array = lanes % self.local
        return found

    def columns(self, count: int) -> Array:
        """Add `count` columns and return their indices."""
        first = self.rows.times.shape[1]
        self.rows.add_columns(count)
        return np.arange(first, first + count)

    def async_columns(self, kind: str, lanes: Array) -> Array:
        """Return the columns of asynchronous operations of a kind on behalf of lanes."""
        if kind not in self.bases:
            self.bases[kind] = int(self.columns(self.local)[0])
        found: Array = self.bases[kind] + lanes % self.local
        return found

    # --- queries ---

    def happens_before(
        self,
        snapshot: ClockSnapshot,
        lanes: Array,
        columns: Array,
        times: Array,
        proxy: int = GENERIC,
    ) -> Array:
        """Return, for each lane, whether the access of a column at a time happened before.

        Args:
            snapshot: the clocks of the lanes.
            lanes: the lanes that access memory now.
            columns: for each lane, the agent of the earlier access.
            times: for each lane, the time of the earlier access.
            proxy: ASYNC to ask also for a proxy fence between the two.
        """
        own_columns = self.column_of(lanes)
        ordered = times <= self.rows.times[snapshot.rows[proxy, lanes], columns]
        ordered |= (columns == own_columns) & (times <= snapshot.own[proxy, lanes])
        if "copies" in self.bases:
            copies = columns == own_columns + self.bases["copies"]
            ordered |= copies & (times <= snapshot.copies[proxy, lanes])
        result: Array = ordered
        return result

    # --- updates ---

    def tick(self) -> None:
        """Increment the time, so that released clocks do not cover later accesses."""
        self.now += 1
        own = self.snapshot.own.copy()
        own[GENERIC] = self.now
        self.snapshot = replace(self.snapshot, own=own)

    def joined(self, snapshot: ClockSnapshot, lanes: Array, groups: Array) -> Array:
        """Return the join of the clocks of each group of lanes.

        Args:
            snapshot: the clocks.
            lanes: the lanes that release.
            groups: the group of each lane, numbered from 0 without a gap.

        Returns:
            The ids of the rows, of shape (proxies, groups).
        """
        found = []
        own_columns = self.column_of(lanes)
        for proxy in range(self.proxy_count):
            pairs = np.unique(groups * len(self.rows.times) + snapshot.rows[proxy, lanes])
            group, number = np.divmod(pairs, len(self.rows.times))
            starts = np.flatnonzero(np.diff(group, prepend=-1))
            rows = np.maximum.reduceat(self.rows.times[number], starts)
            rows[groups, own_columns] = np.maximum(
                rows[groups, own_columns], snapshot.own[proxy, lanes]
            )
            if "copies" in self.bases:
                cells = groups, own_columns + self.bases["copies"]
                rows[cells] = np.maximum(rows[cells], snapshot.copies[proxy, lanes])
            views: Array | int = 0
            if self.rows.launch is not None:
                views = self.rows.launch.joined_groups(self.rows.views[number], starts)
            found.append(self.rows.add(rows, views))
        return np.stack(found)

    def acquire(self, lanes: Array, numbers: Array) -> None:
        """Join rows into the clocks of lanes (`numbers`: (proxies, lanes) row ids)."""
        rows = self.snapshot.rows.copy()
        rows[:, lanes] = self.rows.join(rows[:, lanes], numbers)
        self._set_rows(rows)

    def acquire_column(self, lanes: Array, columns: Array, time: int) -> None:
        """Join the accesses of one column each, up to a time, into the clocks of lanes."""
        rows = self.snapshot.rows.copy()
        times = np.full(len(lanes), time)
        rows[GENERIC, lanes] = self.rows.advanced(rows[GENERIC, lanes], columns, times)
        self._set_rows(rows)

    def acquire_copies(self, mask: Array, time: int) -> None:
        """Join the lanes' own `cp.async` up to a time into the clocks of the lanes of `mask`."""
        copies = self.snapshot.copies.copy()
        copies[GENERIC] = np.where(mask, np.maximum(copies[GENERIC], time), copies[GENERIC])
        self.snapshot = replace(self.snapshot, copies=copies)

    def synchronize(self, joined: Array, groups: Array, lanes: Array) -> None:
        """Set the clocks of waiting lanes to the join of their groups, which includes their own."""
        rows = self.snapshot.rows.copy()
        rows[:, lanes] = joined[:, groups]
        self._set_rows(rows)

    def publish_to_async_proxy(self, mask: Array) -> None:
        """Make the clocks of the lanes of `mask` visible to the asynchronous proxy."""
        both = [
            np.stack([x[GENERIC], np.where(mask, x[GENERIC], x[ASYNC])])
            for x in (self.snapshot.own, self.snapshot.copies, self.snapshot.rows)
        ]
        self.snapshot = ClockSnapshot(*both)

    def _set_rows(self, rows: Array) -> None:
        self.snapshot = replace(self.snapshot, rows=rows)
        alive = rows[GENERIC, self.wave.alive]
        self.floor = int(self.rows.floor[alive].min()) if len(alive) else 0
