"""How the threads of a CTA go over the vectors of a tile, run by run.

Threads that have a place in a run keep it: a step leads to other runs, at distances that are known.
So a thread computes its place once, however long runs are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.frontend import if_


@dataclass(frozen=True, slots=True)
class Walk:
    """The steps of threads over the vectors of a tile.

    Attributes:
        outer: the tile's sizes outside of the run.
        run: vectors of a run.
        together: runs that threads go over at a time.
    """

    outer: tuple[int, ...]
    run: int
    together: int

    @staticmethod
    def of(extents: Sequence[int], most: int) -> Walk:
        """Return the walk of up to `most` threads over a tile, whose last size is the run's.

        Runs that are taken together are whole dimensions and a divisor of one more, so that from
        step to step only one coordinate changes.
        """
        *outer, run = extents
        together, room = 1, max(1, most // run)
        for size in reversed(outer):
            part = max(d for d in range(1, min(size, room) + 1) if size % d == 0)
            together, room = together * part, room // part
            if part < size:
                break
        return Walk(tuple(outer), run, together)

    def threads(self, most: int) -> int:
        """Return how many threads work, of at most so many."""
        return self.together * self.run if self.run <= most else most

    def steps(self, most: int) -> int:
        """Return how many vectors a thread has at most."""
        return prod(self.outer) // self.together * -(-self.run // min(most, self.run))

    def __call__(
        self, thread: Any, block: int, most: int, access: Callable[[Sequence[Any]], Any]
    ) -> list[Any]:
        """Access the vectors that all working threads have; return what the accesses return.

        It is called where only the first `threads(most)` threads of `block` come. What is left
        over at the end of long runs is for `rest`.

        Args:
            thread: the number of the thread.
            block: the threads of the CTA.
            most: the threads that may work.
            access: takes the index of a vector in the tile.
        """
        start = self.start(thread, block, most)
        return [access(_sum(start, step)) for step in self.whole_steps(most)]

    def rest(
        self, thread: Any, block: int, most: int, access: Callable[[Sequence[Any]], Any]
    ) -> None:
        """Access the vectors that are left over for the first threads; arguments as of a call."""
        left = self.left(most)
        if left:
            start = self.start(thread, block, most)

            @if_(thread < left)
            def _() -> None:
                for step in self.last_steps(most):
                    access(_sum(start, step))

    def start(self, thread: Any, block: int, most: int) -> tuple[Any, ...]:
        """Return the index of a thread's first vector; arguments as of a call."""
        threads = self.threads(most)
        if threads < block:  # where the others do not come
            _, thread = OrderBy(Row(-(-block // threads), threads)).inv(thread)
        if self.run > most:
            return (*((0,) * len(self.outer)), thread)
        first, column = OrderBy(Row(self.together, self.run)).inv(thread)
        runs = OrderBy(Row(prod(self.outer) // self.together, self.together))
        outer = OrderBy(Row(*self.outer)).inv(runs.apply(0, first)) if self.outer else ()
        return (*outer, column)

    def whole_steps(self, most: int) -> list[tuple[int, ...]]:
        """Return how far the vectors that all threads have are from a thread's first one."""
        return self._steps(most, range(self.run // most if self.run > most else 1))

    def last_steps(self, most: int) -> list[tuple[int, ...]]:
        """Return how far those are that only the first `left(most)` threads have."""
        return self._steps(most, [self.run // most]) if self.left(most) else []

    def left(self, most: int) -> int:
        """Return how many threads have a vector of the rest of a run."""
        return self.run % most if self.run > most else 0

    def _steps(self, most: int, pieces: Sequence[int]) -> list[tuple[int, ...]]:
        places = OrderBy(Row(*self.outer)) if self.outer else None
        firsts = range(0, prod(self.outer), self.together)
        return [
            (*(places.inv(first) if places else ()), piece * most)
            for first in firsts
            for piece in pieces
        ]


def _sum(index: Sequence[Any], step: Sequence[int]) -> tuple[Any, ...]:
    return tuple(i + d for i, d in zip(index, step, strict=True))
