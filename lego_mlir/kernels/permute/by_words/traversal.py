"""How the threads of a CTA go over the rows of a tile, a word at a time, at constant distances.

A *row* is what lies side by side in one of the two memories; a *word* is what one access takes.
Rows begin anywhere in a word: the *phase* of a row is where. A thread keeps its place in a row, and
steps from row to row by distances that are multiples of a word, so the phase stays as it is. So a
thread finds out once which elements of its word belong to the row, and where each of them goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import WARP_THREADS


@dataclass(frozen=True, slots=True)
class Traversal:
    """The threads of a CTA on the rows of a tile.

    Attributes:
        extents: rows of the tile along each mode outside of the row, slowest first.
        words: of a row, at most.
        threads: along each of these modes, and behind them along the row.
        lanes: rows that neighbouring threads are on, before they go on along the row: `(k, n)` are
            n rows along mode k.
    """

    extents: tuple[int, ...]
    words: int
    threads: tuple[int, ...]
    lanes: tuple[int, int] = (0, 1)

    @property
    def count(self) -> int:
        """The threads that work."""
        return prod(self.threads)

    @property
    def warps(self) -> int:
        """The warps of these threads."""
        return -(-self.count // WARP_THREADS)

    @property
    def requests(self) -> int:
        """The accesses of warps in all steps."""
        return self.warps * prod(self.counts)

    @property
    def steps(self) -> list[tuple[int, ...]]:
        """How far a thread's words are from its first one: rows of each mode, and words."""
        sizes = (*self.extents, self.words)
        return list(product(*(range(0, n, t) for n, t in zip(sizes, self.threads, strict=True))))

    @property
    def tree(self) -> tuple[int, ...]:
        """The sizes that a thread's number is divided by, slowest first."""
        *rows, across = self.threads
        mode, lanes = self.lanes
        return (*(n // lanes if k == mode else n for k, n in enumerate(rows)), across, lanes)

    def place(self, thread: Any) -> tuple[tuple[Any, ...], Any]:
        """Return the first row of a thread along each mode, and its first word.

        Args:
            thread: its number, below `count`; a number, an array or a value of a kernel.
        """
        *rows, word, lane = OrderBy(Row(*self.tree)).inv(thread)
        mode, lanes = self.lanes
        if lanes > 1:
            rows[mode] = OrderBy(Row(self.tree[mode], lanes)).apply(rows[mode], lane)
        return tuple(rows), word

    @property
    def counts(self) -> tuple[int, ...]:
        """The steps along each mode, and along the row."""
        sizes = (*self.extents, self.words)
        return tuple(-(-n // t) for n, t in zip(sizes, self.threads, strict=True))

    def overshoots(self, step: Sequence[int]) -> list[int]:
        """Return the modes, and behind them the row, along which a step leads some threads out."""
        sizes = (*self.extents, self.words)
        ends = zip(step, self.threads, sizes, strict=True)
        return [k for k, (distance, t, n) in enumerate(ends) if distance + t > n]

    def grouped(self) -> list[tuple[dict[int, int], list[tuple[int, ...]]]]:
        """Return the steps that exist under the same conditions, and at the same part of a row.

        Returns:
            Pairs of conditions and steps. A condition is a mode, or the number of modes for the
            row, and a distance: a thread's first row along the mode, and that, are inside.
        """
        found: dict[tuple[Any, ...], tuple[dict[int, int], list[tuple[int, ...]]]] = {}
        for step in self.steps:
            conditions = {k: step[k] for k in self.overshoots(step)}
            key = (tuple(conditions.items()), step[-1])
            found.setdefault(key, (conditions, []))[1].append(step)
        return list(found.values())


def traverse(
    extents: Sequence[int],
    strides: Sequence[int],
    words: int,
    multiple: int,
    period: int,
    most: int,
) -> Traversal | None:
    """Return how up to `most` threads go over rows; `None` if they cannot at constant distances.

    Args:
        extents: rows of the tile along each mode outside of the row, slowest first.
        strides: the distance in memory of neighbouring rows along each of them, in units.
        words: of a row, at most.
        multiple: words that a thread which takes several words of a row goes on by multiples of.
        period: units that a thread goes on by multiples of from row to row.
        most: threads of the CTA.
    """
    periods = [period // gcd(period, stride) for stride in strides]
    threads = [min(pair) for pair in zip(extents, periods, strict=True)]
    room = most // prod(threads)
    across = words
    if words > room:
        across = room // multiple * multiple
    if not across:
        return None
    room //= across
    for k in reversed(range(len(extents))):
        extent, period = extents[k], periods[k]
        if extent > threads[k]:
            # The fewest steps that there is room for, by as few threads as make so few.
            counts = (-(-extent // (n * period)) * period for n in range(1, extent + 1))
            grown = (
                extent
                if extent <= room * threads[k]
                else next(n for n in counts if n <= room * threads[k])
            )
            room = room * threads[k] // grown
            threads[k] = grown
    return Traversal(tuple(extents), words, (*threads, across))
