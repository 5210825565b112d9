"""What the threads of a wave know of one another: vector clocks, shared by number.

An access happens before another if a chain of synchronisations leads from the one to the other.
Time is a counter that every synchronisation moves on. Each *actor* has a column: a lane for what it
does itself, and others for what is done on its behalf beside it (copies, matrix products), which a
lane knows of only after a wait. A *row* says of each column up to which time all that its actor did
is known.

Lanes that have met know the same, so rows are shared: they have numbers, are never changed, and
what a lane knows is the number of a row, beside what it has done itself (see `View`). A barrier of
a block makes one row, however many threads meet there.

Everything is kept on two sides where the kernel uses the asynchronous proxy: what is known, and
what of that has passed a `fence.proxy.async` on its way, so that this proxy sees it.

Source: PTX ISA 8 (causality order); C. Flanagan, S. Freund, FastTrack, 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

GENERIC, ASYNC = 0, 1
"""Sides: what is known, and what of it the asynchronous proxy sees."""
BESIDE = 1 << 30
"""Times of what is done beside the lanes begin here, where no floor (see `Clocks`) reaches."""
_LEAST = 256


class Rows:
    """Rows by number; row 0 says nothing.

    Attributes:
        times: the rows, (capacity, columns).
        floor: of each row the least time of the first `local` columns, those of the lanes.
    """

    def __init__(self, local: int) -> None:
        self.local = local
        self.times = np.zeros((_LEAST, local), np.int32)
        self.floor = np.zeros(_LEAST, np.int32)
        self.free = np.arange(1, _LEAST)
        self.limit = _LEAST

    @property
    def crowded(self) -> bool:
        """Whether it is time for `keep`."""
        return len(self.times) - len(self.free) > self.limit

    def keep(self, live: Iterable[Array]) -> None:
        """Forget all rows but those of these numbers."""
        used = np.zeros(len(self.times), np.bool_)
        used[0] = True
        for numbers in live:
            used[numbers] = True
        self.free = np.flatnonzero(~used)
        self.limit = max(_LEAST, 2 * int(used.sum()))

    def widen(self, columns: int) -> None:
        """Have so many more columns, of which nothing is known."""
        self.times = np.pad(self.times, [(0, 0), (0, columns)])

    def add(self, rows: Array) -> Array:
        """The numbers of new rows."""
        count, size = len(rows), len(self.times)
        if count > len(self.free):
            more = max(size, count)
            self.times = np.pad(self.times, [(0, more), (0, 0)])
            self.floor = np.pad(self.floor, (0, more))
            self.free = np.append(self.free, np.arange(size, size + more))
        numbers, self.free = self.free[:count], self.free[count:]
        self.times[numbers] = rows
        self.floor[numbers] = rows[:, : self.local].min(axis=1)
        return numbers

    def union(self, a: Array, b: Array) -> Array:
        """Element by element the number of a row that says what either says."""
        if not b.any():
            return a
        pairs, which = np.unique(a * len(self.times) + b, return_inverse=True)
        first, second = np.divmod(pairs, len(self.times))
        return self._raised(first, self.times[second])[which].reshape(a.shape)

    def raised(self, numbers: Array, columns: Array, times: Array) -> Array:
        """Rows that know of one more thing each: what the actor of a column did up to a time."""
        width, latest = self.times.shape[1], int(times.max()) + 1
        keys = (numbers * width + columns) * latest + times
        keys, which = np.unique(keys, return_inverse=True)
        more = np.zeros((len(keys), width), np.int32)
        more[np.arange(len(keys)), keys // latest % width] = keys % latest
        return self._raised(keys // latest // width, more)[which]

    def _raised(self, numbers: Array, more: Array) -> Array:
        """Rows with more in them; where it is nothing new, the same as before."""
        before = self.times[numbers]
        both = np.maximum(before, more)
        fresh = (both != before).any(axis=1)
        if fresh.any():
            numbers = numbers.copy()
            numbers[fresh] = self.add(both[fresh])
        return numbers


@dataclass(frozen=True, slots=True)
class View:
    """What each lane knows at some moment, or knew when it told of it.

    The arrays are of shape (sides, lanes) and never changed in place.

    Attributes:
        own: up to which time what the lane has done itself is counted.
        copies: the same for copies (`cp.async`) that the lane has issued and waited for.
        rows: the number of the row with everything else.
    """

    own: Array
    copies: Array
    rows: Array

    def where(self, mask: Array, other: View) -> View:
        """This view in the lanes of a mask, another one in the rest."""
        return View(
            np.where(mask, self.own, other.own),
            np.where(mask, self.copies, other.copies),
            np.where(mask, self.rows, other.rows),
        )


class Clocks:
    """What the lanes of a wave know now, and how it spreads.

    Attributes:
        now: the time.
        view: what each lane knows.
        floor: a time up to which every living lane knows what all lanes of its cluster have done.
        local: lanes of a cluster, and columns of what they do themselves.
    """

    def __init__(self, wave: Wave, sides: int) -> None:
        self.wave = wave
        self.sides = sides
        self.local = wave.threads * wave.cluster_size
        self.bases: dict[str, int] = {}
        self.rows = Rows(self.local)
        self.now = 1
        nothing = np.zeros((sides, wave.lanes), np.int64)
        self.nothing = self.view = View(nothing, nothing, nothing)
        self.floor = 0
        self.tick()

    # --- columns ---

    def column_of(self, lanes: Array) -> Array:
        """The columns of what lanes do themselves."""
        found: Array = lanes % self.local
        return found

    def columns(self, count: int) -> Array:
        """So many new columns."""
        first = self.rows.times.shape[1]
        self.rows.widen(count)
        return np.arange(first, first + count)

    def beside(self, kind: str, lanes: Array) -> Array:
        """The columns of what is done for lanes beside them, one for each lane and kind."""
        if kind not in self.bases:
            self.bases[kind] = int(self.columns(self.local)[0])
        found: Array = self.bases[kind] + lanes % self.local
        return found

    # --- asking ---

    def knows(
        self, view: View, lanes: Array, columns: Array, times: Array, side: int = GENERIC
    ) -> Array:
        """Whether lanes know, in a view, what the actors of columns did at times."""
        mine = self.column_of(lanes)
        known = times <= self.rows.times[view.rows[side, lanes], columns]
        known |= (columns == mine) & (times <= view.own[side, lanes])
        if "copies" in self.bases:
            copies = columns == mine + self.bases["copies"]
            known |= copies & (times <= view.copies[side, lanes])
        result: Array = known
        return result

    # --- telling ---

    def tick(self) -> None:
        """Move time on: what is done from now on is none of what has been told."""
        self.now += 1
        own = self.view.own.copy()
        own[GENERIC] = self.now
        self.view = replace(self.view, own=own)

    def told(self, view: View, lanes: Array, groups: Array) -> Array:
        """What groups of lanes know together, in a view.

        Args:
            view: at which moment.
            lanes: who tells.
            groups: the group of each, numbered from 0 without a gap.

        Returns:
            The numbers of rows, one for each side and group.
        """
        found = []
        mine = self.column_of(lanes)
        for side in range(self.sides):
            pairs = np.unique(groups * len(self.rows.times) + view.rows[side, lanes])
            group, number = np.divmod(pairs, len(self.rows.times))
            starts = np.flatnonzero(np.diff(group, prepend=-1))
            rows = np.maximum.reduceat(self.rows.times[number], starts)
            rows[groups, mine] = np.maximum(rows[groups, mine], view.own[side, lanes])
            if "copies" in self.bases:
                place = groups, mine + self.bases["copies"]
                rows[place] = np.maximum(rows[place], view.copies[side, lanes])
            found.append(self.rows.add(rows))
        return np.stack(found)

    def learn(self, lanes: Array, numbers: Array) -> None:
        """Lanes learn what rows say: for each lane a number on each side."""
        rows = self.view.rows.copy()
        rows[:, lanes] = self.rows.union(rows[:, lanes], numbers)
        self._set_rows(rows)

    def learn_of(self, lanes: Array, columns: Array, time: int) -> None:
        """Each lane learns what the actor of its column did up to a time."""
        rows = self.view.rows.copy()
        times = np.full(len(lanes), time)
        rows[GENERIC, lanes] = self.rows.raised(rows[GENERIC, lanes], columns, times)
        self._set_rows(rows)

    def learn_of_copies(self, mask: Array, time: int) -> None:
        """Each lane of a mask learns that its own copies up to a time are done."""
        copies = self.view.copies.copy()
        copies[GENERIC] = np.where(mask, np.maximum(copies[GENERIC], time), copies[GENERIC])
        self.view = replace(self.view, copies=copies)

    def meet(self, told: Array, groups: Array, lanes: Array) -> None:
        """Lanes that have told, each in a group, and have waited since, know what it told."""
        rows = self.view.rows.copy()
        rows[:, lanes] = told[:, groups]
        self._set_rows(rows)

    def show(self, mask: Array) -> None:
        """The asynchronous proxy sees what lanes of a mask know."""
        both = [
            np.stack([x[GENERIC], np.where(mask, x[GENERIC], x[ASYNC])])
            for x in (self.view.own, self.view.copies, self.view.rows)
        ]
        self.view = View(*both)

    def _set_rows(self, rows: Array) -> None:
        self.view = replace(self.view, rows=rows)
        alive = rows[GENERIC, self.wave.alive]
        self.floor = int(self.rows.floor[alive].min()) if len(alive) else 0
