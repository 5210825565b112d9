"""The last tile of a permutation by words: some of its words are not, or not wholly, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.kernels.permute.by_words.tile import places_of
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.by_words.whole_tile import WholeTile
from lego_mlir.kernels.permute.conditions import both


@dataclass(frozen=True, slots=True)
class LastTile(WholeTile):
    """A tile whose rows end at the end of memory, or so near that a word more is beyond it."""

    def read(self, traversal: Traversal, thread: Any, x: Any, buffer: Any) -> None:
        """Load the words of the input's rows, and put their units into shared memory."""
        source, word = self.source, self.config.word
        units, words = source.units, source.total // word
        last = self._last_word(x)
        for places in places_of(traversal, thread):
            loaded = []
            for rows, column, holds in places:
                first, phase = self.first_words(rows)
                exists = both(holds, column * word < units + phase)

                def load(first: Any = first, column: Any = column) -> tuple[Any, ...]:
                    value = x[(first + column).below(words), 0, :, :]
                    return tuple(value[j] for j in range(word))

                taken = exists & (first + column < words)
                values = lg.cond(taken, load, lambda: last)
                loaded.append((rows, column * word - phase, exists, values))
            for rows, begin, exists, values in loaded:
                for j in range(word):
                    along = begin + j
                    is_in = exists & (along < units) & (along >= 0)

                    def put(rows: Any = rows, along: Any = along, value: Any = values[j]) -> None:
                        buffer[self.put_at(rows, along).below(self.units), :] = value

                    lg.if_(is_in)(put)

    def _last_word(self, x: Any) -> tuple[Any, ...]:
        """Return the units of the input's last word, of which memory may not have all."""
        total, unit, word = self.source.total, self.config.unit, self.config.word
        flat, zeros = x.view(OrderBy(Row(total, unit))), lg.zeros((unit,), x.dtype)
        first = total - total % word
        return tuple(flat[first + j, :] if first + j < total else zeros for j in range(word))
