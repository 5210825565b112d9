"""A tile of a permutation by words at a mode's end, or that others store some units of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.kernels.permute.by_words.tile import begun, is_end, places_of
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.by_words.whole_tile import WholeTile
from lego_mlir.kernels.permute.conditions import both


@dataclass(frozen=True, slots=True)
class CutTile(WholeTile):
    """A tile that begins earlier than others do, or that has an end of the output's rows.

    Attributes:
        skips: what another tile stores of each mode, from the tile's begin on; 0 where it is none.
        is_first: whether rows of the output begin in the tile.
        is_last: whether they end there. Both matter only where tiles store whole sectors.
    """

    skips: Sequence[Any]
    is_first: Any
    is_last: Any

    def write(self, traversal: Traversal, thread: Any, out: Any, y: Any) -> None:
        """Store the words that lie in the output's rows."""
        target, word = self.target, self.config.word
        for rows, column, holds in self._places(traversal, thread):
            inside, start, phase, units = self._rest(rows)
            before = begun(phase, word) if not target.is_aligned else 0
            row = target.in_words().inv(start)[0] + before
            # The sector mode counts from the next sector in tiles that have no end of a row only.
            lead = target.lead(row) if target.group > 1 else 0
            first = column + before + lead
            is_in = both(holds, (first + 1) * word <= units + phase)
            if target.group > 1:
                at = row + column + lead
                is_in = both(is_in, target.is_stored(column + lead, at, start + units))

            def store(inside: Any = inside, start: Any = start, first: Any = first) -> None:
                taken = self.in_words(inside)[0] + first
                at = target.in_words().inv(start)[0] + first
                value = out[taken.below(self.words), :, :]
                y[at.below(target.total // word), 0, :, :] = value

            lg.if_(is_in)(store)

    def write_ends(self, traversal: Traversal, thread: Any, buffer: Any, flat: Any) -> None:
        """Store what is left over at both ends of the output's rows, unit by unit."""
        target = self.target
        for rows, number, holds in self._places(traversal, thread):
            inside, start, phase, units = self._rest(rows)
            if target.group > 1:
                along, is_one = target.end_of_sectors(number, start, units)
            else:
                along, is_one = is_end(number, units, phase, target.touched, target.word)

            def store(inside: Any = inside, start: Any = start, along: Any = along) -> None:
                value = buffer[(inside + along).below(self.units), :]
                flat[(start + along).below(target.total), :] = value

            lg.if_(both(holds, is_one))(store)

    def _places(
        self, traversal: Traversal, thread: Any
    ) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
        """Yield the rows and words that a thread goes to, and the condition that it stores them."""
        for places in places_of(traversal, thread):
            for rows, word, exists in places:
                holds = exists
                for k, row in zip(self.target.side.outer, rows, strict=True):
                    if not isinstance(self.skips[k], int):
                        holds = both(holds, row >= self.skips[k])
                yield rows, word, holds

    def _rest(self, rows: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        """Return what is stored of a row: its begin in both memories, its phase, its units."""
        inside, start, _ = self.row(rows)
        target = self.target
        skipped = self.skips[target.side.run[0]] * target.inner
        end: Any = target.units
        if target.sector > 1:
            ahead = skipped + target.to_sector(start + skipped, 1)
            skipped = lg.where(self.is_first, 0, ahead)
            behind = target.advance * target.inner
            end = lg.where(self.is_last, end, behind + target.to_sector(start + behind, 1))
        inside, start = inside + skipped, start + skipped
        phase = 0 if target.is_aligned else self.in_words(inside)[1]
        return inside, start, phase, end - skipped
