"""A whole tile of a permutation by words: all distances and most conditions are known.

A thread loads all its words before it waits for the first one. Conditions are on what the thread
does in all its steps: so they are few, and each is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.index.functions import minimum
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.tile import WordTile, begun, is_end
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.conditions import both, holds, where
from lego_mlir.kernels.permute.problem import count_tiles


@dataclass(frozen=True, slots=True)
class WholeTile(WordTile):
    """A tile that has all its units, all of whose words are in memory."""

    def read(self, traversal: Traversal, thread: Any, x: Any, buffer: Any) -> None:
        """Load the words of the input's rows, and put their units into shared memory."""
        source, word = self.source, self.config.word
        rows, column = traversal.place(thread)
        first, phase = self.first_words(rows)
        zeros = lg.zeros((word, self.config.unit), x.dtype)

        def load(steps: Sequence[Sequence[int]]) -> tuple[Any, ...]:
            places = [first + column + source.offset(step) for step in steps]
            return tuple(x[place.below(source.total // word), 0, :, :] for place in places)

        def none(steps: Sequence[Sequence[int]]) -> tuple[Any, ...]:
            return (zeros,) * len(steps)

        groups = []
        for conditions, steps in traversal.grouped():
            is_in = holds(traversal, conditions, rows, column)
            loads = partial(load, steps)
            values = loads() if is_in is None else lg.cond(is_in, loads, partial(none, steps))
            groups.append((is_in, steps, values))
        for is_in, steps, values in groups:
            for j in range(word):
                along = OrderBy(Row(traversal.words, word)).apply(column, j) - phase
                self._put(rows, along, is_in, steps, [value[j] for value in values], buffer)

    def _put(
        self,
        rows: Sequence[Any],
        along: Any,
        is_in: Any,
        steps: Sequence[Sequence[int]],
        values: Sequence[Any],
        buffer: Any,
    ) -> None:
        """Put one unit of words into shared memory, if it is in the row.

        Args:
            rows: the first row of the thread, along each outer mode.
            along: where in the row the unit of the thread's first word is.
            is_in: the condition under which the steps exist.
            steps: how far the words are from the first one; all at the same part of the row.
            values: the units.
            buffer: shared memory.
        """
        source, inside = self.source, is_in
        distance = steps[0][-1] * self.config.word
        if not source.is_aligned:
            if distance == 0:
                inside = both(inside, along >= 0)
            inside = both(inside, along + distance < source.units)
        apart = distance // source.inner * self.config.pitches[source.side.run[0]]

        def put() -> None:
            base = self.put_at(rows, along)
            for step, value in zip(steps, values, strict=True):
                far = self._far(source, step) + apart
                buffer[(base + far).below(self.units), :] = value

        where(inside, put)

    def _far(self, side: RowSide, step: Sequence[int]) -> int:
        """Return how many units of shared memory a step of rows is."""
        pitches = self.config.pitches
        return sum(n * pitches[k] for n, k in zip(step[:-1], side.side.outer, strict=True))

    def write(self, traversal: Traversal, thread: Any, out: Any, y: Any) -> None:
        """Store the words that lie in the output's rows."""
        target, word = self.target, self.config.word
        rows, column = traversal.place(thread)
        inside, start, phase = self.row(rows)
        near, far = self.in_words(inside)[0], target.in_words().inv(start)[0]
        # Words of a row are counted from the first whole one.
        first = begun(phase, word) if not target.is_aligned else 0
        is_grouped = target.sector == 1 < target.group
        for conditions, steps in traversal.grouped():
            is_in = holds(traversal, conditions, rows, column)
            if not is_grouped and target.sector == 1 and not target.is_aligned:
                along = column + first + (steps[0][-1] + 1)
                is_in = both(is_in, along * word <= target.units + phase)

            def store(steps: Sequence[Sequence[int]] = steps) -> None:
                for step in steps:
                    row = far + first + target.offset((*step[:-1], 0))
                    nth = column + step[-1] + target.lead(row)
                    at = row + nth
                    is_one = None if target.is_whole else self._is_stored(start, step, at)
                    if is_grouped:
                        end = start + target.offset((*step[:-1], 0)) * word + target.units
                        is_one = target.is_stored(nth, at, end)

                    def put(step: Any = step, row: Any = row, nth: Any = nth) -> None:
                        taken = near + self._far(target, step) // word + first + nth
                        value = out[taken.below(self.words), :, :]
                        # Computed here: what is promised of a value holds where it is computed.
                        y[(row + nth).below(target.total // word), 0, :, :] = value

                    where(is_one, put)

            where(is_in, store)

    def _is_stored(self, start: Any, step: Sequence[int], word: Any) -> Any:
        """Return whether a word precedes the sector that the next tile begins with.

        Args:
            start: the unit of memory that the thread's first row begins with.
            step: how far the row is from that one.
            word: of memory.
        """
        target = self.target
        end = start + target.offset((*step[:-1], 0)) * target.word + target.advance * target.inner
        words = OrderBy(Row(count_tiles(target.total, target.word) + 1, target.word))
        return word < words.inv(end + target.to_sector(end, 1))[0]

    def write_ends(self, traversal: Traversal, thread: Any, buffer: Any, flat: Any) -> None:
        """Store what is left over at both ends of the output's rows, unit by unit."""
        target, word = self.target, self.config.word
        rows, number = traversal.place(thread)
        inside, start, phase = self.row(rows)
        for conditions, steps in traversal.grouped():
            # Ends of a row are no part of it: their distance along the row is another number.
            end = minimum(number + steps[0][-1], target.ends - 1)
            is_in = holds(traversal, conditions, rows, number)
            along: Any = None
            if target.group == 1:
                along, is_one = is_end(end, target.units, phase, target.touched, word)
                is_in = both(is_in, is_one)

            def store(
                steps: Sequence[Sequence[int]] = steps, along: Any = along, end: Any = end
            ) -> None:
                for step in steps:
                    row = start + target.offset((*step[:-1], 0)) * word
                    is_one, unit = None, along
                    if target.group > 1:
                        unit, is_one = target.end_of_sectors(end, row, target.units)

                    def put(step: Any = step, row: Any = row, unit: Any = unit) -> None:
                        place = inside + unit + self._far(target, step)
                        value = buffer[place.below(self.units), :]
                        flat[(row + unit).below(target.total), :] = value

                    where(is_one, put)

            where(is_in, store)
