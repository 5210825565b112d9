"""A tile of a permutation by words that is cut: a few words at a time, each with its conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.kernels.permute.problem import count_tiles
from lego_mlir.kernels.permute.row_side import RowSide
from lego_mlir.kernels.permute.traversal import Traversal
from lego_mlir.kernels.permute.word_tile import WordTile, begun, both, is_end

_AT_ONCE = 4
"""Words that a thread loads before it waits for the first one."""


@dataclass(frozen=True, slots=True)
class CutTile(WordTile):
    """A tile that may have fewer units than others, and words that are not wholly in memory."""

    def read(self, traversal: Traversal, thread: Any, x: Any, buffer: Any) -> None:
        """Load the words of the input's rows, and put their units into shared memory."""
        source, word = self.source, self.config.word
        units, words = self._row_units(source), source.total // word
        last = self._last_word(x)
        for places in self._steps(traversal, thread):
            loaded = []
            for rows, column, holds in self._inside(source, traversal, places):
                first, phase = self.first_words(rows)
                exists = both(holds, column * word < units + phase)
                at = first + column
                taken = exists & (at < words) if source.total % word else exists

                def load(first: Any = first, column: Any = column) -> tuple[Any, ...]:
                    value = x[(first + column).below(words), 0, :, :]
                    return tuple(value[j] for j in range(word))

                values = lg.cond(taken, load, lambda: last)
                loaded.append((rows, column * word - phase, exists, values))
            for rows, begin, exists, values in loaded:
                for j in range(word):
                    along = begin + j
                    is_in = both(exists, along < units)
                    if not source.is_aligned:
                        is_in = both(is_in, along >= 0)

                    def put(rows: Any = rows, along: Any = along, value: Any = values[j]) -> None:
                        buffer[self.put_at(rows, along).below(self.units), :] = value

                    lg.if_(is_in)(put)

    def _last_word(self, x: Any) -> tuple[Any, ...]:
        """Return the units of the input's last word, of which memory may not have all."""
        total, unit, word = self.source.total, self.config.unit, self.config.word
        flat, zeros = x.view(OrderBy(Row(total, unit))), lg.zeros((unit,), x.dtype)
        first = total - total % word
        return tuple(flat[first + j, :] if first + j < total else zeros for j in range(word))

    def write(self, traversal: Traversal, thread: Any, out: Any, y: Any) -> None:
        """Store the words that lie in the output's rows."""
        target, word = self.target, self.config.word
        units = self._row_units(target)
        for places in self._steps(traversal, thread):
            for rows, column, holds in self._inside(target, traversal, places):
                inside, start, phase = self.row(rows)
                first = column + begun(phase, word) if not target.is_aligned else column
                is_in = both(holds, (first + 1) * word <= units + phase)

                def store(inside: Any = inside, start: Any = start, first: Any = first) -> None:
                    taken = self.in_words(inside)[0] + first
                    at = target.in_words().inv(start)[0] + first
                    value = out[taken.below(self.words), :, :]
                    y[at.below(target.total // word), 0, :, :] = value

                lg.if_(is_in)(store)

    def write_ends(self, traversal: Traversal, thread: Any, buffer: Any, flat: Any) -> None:
        """Store what is left over at both ends of the output's rows, unit by unit."""
        target = self.target
        units = self._row_units(target)
        for places in self._steps(traversal, thread):
            for rows, number, holds in self._inside(target, traversal, places):
                inside, start, phase = self.row(rows)
                along, is_one = is_end(number, units, phase, target.touched, target.word)

                def store(inside: Any = inside, start: Any = start, along: Any = along) -> None:
                    value = buffer[(inside + along).below(self.units), :]
                    flat[(start + along).below(target.total), :] = value

                lg.if_(both(holds, is_one))(store)

    def _steps(
        self, traversal: Traversal, thread: Any
    ) -> Iterator[list[tuple[tuple[Any, ...], Any]]]:
        """Yield the rows and words that a thread goes to, a few at a time, in a loop."""
        first, word = traversal.place(thread)
        counts = traversal.counts
        together = max(n for n in range(1, _AT_ONCE + 1) if prod(counts) % n == 0)
        steps = OrderBy(Row(*counts))
        for k in lg.loop(prod(counts) // together):
            places = []
            for n in range(together):
                number = OrderBy(Row(prod(counts) // together, together)).apply(k, n)
                *rows, along = (
                    i + step * t
                    for i, step, t in zip(
                        (*first, word), steps.inv(number), traversal.threads, strict=True
                    )
                )
                places.append((tuple(rows), along))
            yield places

    def _inside(
        self, side: RowSide, traversal: Traversal, places: Sequence[tuple[tuple[Any, ...], Any]]
    ) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
        """Yield rows and words with the condition that the tile has them, which may be `None`."""
        for rows, word in places:
            holds: Any = None
            for k, i, n, t in zip(
                side.side.outer, rows, traversal.extents, traversal.threads, strict=False
            ):
                limit = self._limit(side, k)
                if limit is not None:
                    holds = both(holds, i < limit)
                elif n % t:
                    holds = both(holds, i < n)
            if traversal.words % traversal.threads[-1]:
                holds = both(holds, word < traversal.words)
            yield rows, word, holds

    def _row_units(self, side: RowSide) -> Any:
        """Return the units of a row."""
        limit = self._limit(side, side.side.run[0])
        return side.units if limit is None else limit * side.inner

    def _limit(self, side: RowSide, mode: int) -> Any:
        """Return the units of a mode in the tile; `None` if its tiles divide the mode."""
        size, tile = side.side.sizes[mode], side.side.tile[mode]
        if size % tile == 0:
            return None
        if size < tile:
            return size
        is_last, _ = OrderBy(Row(count_tiles(size, size // tile * tile), size // tile)).inv(
            self.blocks[mode]
        )
        return lg.select(is_last, [tile, size % tile])
