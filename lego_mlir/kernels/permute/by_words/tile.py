"""What whole tiles and cut ones have in common in a permutation by words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.index.functions import minimum
from lego_mlir.kernels.permute.by_words.config import WordConfig
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.conditions import both

_AT_ONCE = 4
"""Words that a thread loads in a loop before it waits for the first one."""


@dataclass(frozen=True, slots=True)
class WordTile(ABC):
    """The tile of a CTA.

    Attributes:
        source: the tile in the input.
        target: the tile in the output.
        config: how it is moved.
        begins: where it begins along each mode, as values of the kernel.
        words: of shared memory.
    """

    source: RowSide
    target: RowSide
    config: WordConfig
    begins: Sequence[Any]
    words: int

    @abstractmethod
    def read(self, traversal: Traversal, thread: Any, x: Any, buffer: Any) -> None:
        """Load the words of the input's rows, and put their units into shared memory.

        Args:
            traversal: how threads go over the rows.
            thread: the number of the thread.
            x: the input, indexed as `RowSide.memory`.
            buffer: shared memory, indexed by unit and in the unit.
        """

    @abstractmethod
    def write(self, traversal: Traversal, thread: Any, out: Any, y: Any) -> None:
        """Store the words that lie in the output's rows.

        Args:
            traversal: how threads go over the rows.
            thread: the number of the thread.
            out: shared memory, indexed by word, in the word, and in the unit.
            y: the output, indexed as `RowSide.memory`.
        """

    @abstractmethod
    def write_ends(self, traversal: Traversal, thread: Any, buffer: Any, flat: Any) -> None:
        """Store what is left over at both ends of the output's rows, unit by unit.

        Args:
            traversal: how threads go over the ends of rows.
            thread: the number of the thread.
            buffer: shared memory, indexed by unit and in the unit.
            flat: the output, indexed alike.
        """

    @property
    def units(self) -> int:
        """The units of shared memory."""
        return self.words * self.config.word

    @property
    def phase(self) -> Any:
        """The unit of a word that the tile begins with in the output."""
        if self.target.is_aligned:
            return 0
        start = self.target.start(self.begins, [0] * len(self.target.side.outer))
        return self.target.in_words().inv(start)[1]

    def at(self, index: Mapping[int, Any]) -> Any:
        """Return where a unit lies in shared memory, by its index along modes of the tile."""
        pitches = self.config.pitches
        return sum((i * pitches[k] for k, i in index.items()), start=self.phase)

    def put_at(self, rows: Sequence[Any], along: Any) -> Any:
        """Return where a unit of a row of the input lies in shared memory.

        Args:
            rows: the row's index along each outer mode.
            along: where in the row the unit is; less than a word before the row, too, which gives
                what precedes the row's first unit at its distances.
        """
        side, inner, word = self.source.side, self.source.inner, self.config.word
        if len(side.run) == 1:
            return self.at(dict(zip((*side.outer, *side.run), (*rows, along), strict=True)))
        # Units before the row have no digits: count from earlier steps of its slowest mode.
        before = 0 if self.source.is_aligned else -(-(word - 1) // inner)
        most = -(-self.source.touched * word // inner) + before
        run = OrderBy(Row(most, *(side.tile[k] for k in side.run[1:])))
        place = run.inv(along + before * inner)
        at = self.at(dict(zip((*side.outer, *side.run), (*rows, *place), strict=True)))
        return at - before * self.config.pitches[side.run[0]]

    def first_words(self, rows: Sequence[Any]) -> tuple[Any, Any]:
        """Return the word of the input that a row begins in, and the row's phase."""
        start = self.source.start(self.begins, rows)
        word, phase = self.source.in_words().inv(start)
        return word, 0 if self.source.is_aligned else phase

    def row(self, rows: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Return where a row of the output begins in shared memory and in the output, in units.

        Returns:
            Both, and the row's phase.
        """
        inside = self.at(dict(zip(self.target.side.outer, rows, strict=True)))
        phase = 0 if self.target.is_aligned else self.in_words(inside)[1]
        return inside, self.target.start(self.begins, rows), phase

    def in_words(self, unit: Any) -> tuple[Any, Any]:
        """Return the word of a unit of shared memory, and where in the word it is."""
        word, phase = OrderBy(Row(self.words, self.config.word)).inv(unit)
        return word, phase


def places_of(
    traversal: Traversal, thread: Any
) -> Iterator[list[tuple[tuple[Any, ...], Any, Any]]]:
    """Yield the rows and words that a thread goes to, a few at a time, in a loop of the kernel.

    Each is with the condition that the tile has it, which may be `None`.
    """
    first, word = traversal.place(thread)
    total, sizes = prod(traversal.counts), (*traversal.extents, traversal.words)
    together = max(n for n in range(1, _AT_ONCE + 1) if total % n == 0)
    for k in lg.loop(total // together):
        places = []
        for n in range(together):
            number = OrderBy(Row(total // together, together)).apply(k, n)
            steps = OrderBy(Row(*traversal.counts)).inv(number)
            moves = zip((*first, word), steps, traversal.threads, strict=True)
            index, holds = [], None
            for (i, step, t), size in zip(moves, sizes, strict=True):
                place = i + step * t
                if size % t:
                    holds = both(holds, place < size)
                    place = minimum(place, size - 1)
                index.append(place)
            *rows, along = index
            places.append((tuple(rows), along, holds))
        yield places


def begun(phase: Any, word: int) -> Any:
    """Return how many words a row begins inside of, by its phase: 0 or 1."""
    return OrderBy(Row(2, word)).inv(phase + (word - 1))[0] if word > 1 else 0


def is_end(number: Any, units: Any, phase: Any, touched: int, word: int) -> tuple[Any, Any]:
    """Return which unit of a row is end `number` of 2·(word - 1), and whether it is one.

    The first half are units before the row's first whole word, the others those behind its last.

    Args:
        number: of the end.
        units: of the row.
        phase: where in a word the row begins.
        touched: the most words that the row touches.
        word: units of a word, 2 or more.
    """
    most = word - 1
    half, _ = OrderBy(Row(2, most)).inv(number)
    along = lg.select(half, [number, number + units - 2 * most])
    head = begun(phase, word) * word - phase
    behind = OrderBy(Row(touched + 1, word)).inv(units + phase)[0] * word - phase
    is_head = (half < 1) & (along < head) & (along < units)
    return along, is_head | ((half >= 1) & (along >= behind) & (along >= head))
