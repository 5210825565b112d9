"""A tile in one of the two memories of a permutation, as rows of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.kernels.permute.by_words.traversal import Traversal, traverse
from lego_mlir.kernels.permute.problem import count_tiles
from lego_mlir.kernels.permute.runs import Side, steps_apart


@dataclass(frozen=True, slots=True)
class RowSide:
    """A tile in one of the two memories, as rows of words.

    Attributes:
        side: the tile; a row is its run.
        word: units of a word.
        sector: units that what a tile stores of a row begins and ends at multiples of, in memory,
            apart from the row's own ends; a multiple of `word`, or 1 if it is the tile's own row.
        group: units of a sector of memory, if all words of one are stored by neighbouring threads,
            and parts of one by units; 1 if words are counted from the row's first whole one.
        apart: steps of the row's slowest mode from tile to tile, if another side's sectors
            determine them; else 0.
    """

    side: Side
    word: int
    sector: int = 1
    group: int = 1
    apart: int = 0

    @property
    def is_aligned(self) -> bool:
        """Whether each row begins and ends with a word."""
        return self.side.is_aligned(self.word) and self.advance * self.inner % self.word == 0

    @property
    def units(self) -> int:
        """The units of a row."""
        return self.side.extents[-1]

    @property
    def inner(self) -> int:
        """The units of a step of the row's slowest mode."""
        return prod(self.side.tile[k] for k in self.side.run[1:])

    @property
    def advance(self) -> int:
        """The steps of the row's slowest mode from tile to tile.

        Tiles overlap by those that may precede the first whole sector.
        """
        if self.apart:
            return self.apart
        strides = (self.side.strides[k] for k in self.side.outer)
        steps = self.side.tile[self.side.run[0]]
        return steps_apart(steps, self.inner, gcd(0, *strides), self.sector)

    @property
    def is_whole(self) -> bool:
        """Whether all tiles that have no end of a row store equally many sectors of it."""
        return self.advance * self.inner % self.sector == 0

    @property
    def stored(self) -> int:
        """The most words that threads go to in a row that a tile has no end of."""
        if self.sector == 1:
            return self.grouped
        return count_tiles(self.advance * self.inner, self.sector) * self.sector // self.word

    @property
    def touched(self) -> int:
        """The most words that a row touches."""
        beyond = 0 if self.is_aligned else self.word - 1
        return -(-(self.units + beyond) // self.word)

    @property
    def whole(self) -> int:
        """The most words that lie in a row."""
        return self.units // self.word

    @property
    def sure(self) -> int:
        """The words that tiles store of each row, at least, but those that begin earlier."""
        if self.sector > 1:
            return self.advance * self.inner // self.sector * self.sector // self.word
        return (self.units - (0 if self.is_aligned else self.word - 1)) // self.word

    @property
    def grouped(self) -> int:
        """The most words that threads go to in a row: of its sectors, if it has a `group`."""
        if self.sector > 1:
            return count_tiles(self.units, self.sector) * self.sector // self.word
        if self.group == 1:
            return self.whole
        if not self.is_aligned:
            return self.units // self.group * self.group // self.word
        side, first = self.side, self.side.run[0]
        begins = (self.advance, side.sizes[first] - side.tile[first])
        starts = (side.strides[k] for k in side.outer)
        step = gcd(self.group, *(n * self.inner for n in begins), *starts)
        sectors = count_tiles(self.units + self.group - step, self.group)
        return sectors * self.group // self.word

    @property
    def ends(self) -> int:
        """The most units that are stored apart from words, at both ends of a row."""
        if self.is_aligned:
            return 0
        return 2 * (self.word - 1 if self.group == 1 else self.group)

    @property
    def _by_sectors(self) -> bool:
        """Whether words are counted from where a sector begins in a row of any begin."""
        return self.sector > 1 or (self.group > 1 and not self.is_aligned)

    def lead(self, row: Any) -> Any:
        """Return the word that threads count from, from the first whole word of a row on.

        Args:
            row: that word, in memory.
        """
        if self._by_sectors:
            return self.to_sector(row, self.word)
        size = self.group // self.word
        if size <= 1:
            return 0
        return 0 - OrderBy(Row(count_tiles(self.total, self.group) + 1, size)).inv(row)[1]

    def is_stored(self, nth: Any, at: Any, end: Any) -> Any:
        """Return whether a word of a row is stored by words, if it has a `group`.

        Args:
            nth: the word, from the row's first whole one on.
            at: the word, in memory.
            end: the unit of memory that the row ends before.
        """
        if self.is_aligned:
            return (nth >= 0) & (at * self.word < end)
        sectors = OrderBy(Row(count_tiles(self.total, self.group) + 1, self.group))
        return at < sectors.inv(end)[0] * (self.group // self.word)

    def end_of_sectors(self, number: Any, start: Any, units: Any) -> tuple[Any, Any]:
        """Return which unit of a row is end `number` of `ends`, and whether it is one.

        The first half are units before the row's first whole sector, the others those behind its
        last, if it has a `group`.

        Args:
            number: of the end.
            start: the unit of memory that the row begins with.
            units: of the row.
        """
        half, nth = OrderBy(Row(2, self.group)).inv(number)
        ahead = self.to_sector(start, 1)
        sectors = OrderBy(Row(count_tiles(self.total, self.group) + 1, self.group))
        behind = sectors.inv(start + units)[0] * self.group - start
        along = nth + lg.where(half < 1, ahead - self.group, behind)
        return along, (along < units) & (((half < 1) & (along >= 0)) | (along >= ahead))

    @property
    def total(self) -> int:
        """The units of the memory."""
        return prod(self.side.sizes)

    def traversal(
        self, words: int, most: int, *, in_digits: bool = False, period: int = 0
    ) -> Traversal | None:
        """Return how up to `most` threads go over so many words of each row; `None` if they cannot.

        Args:
            words: of a row.
            most: threads.
            in_digits: whether steps along a row change its slowest mode only.
            period: units that they go on by multiples of from row to row; those of a word if 0.
        """
        outer = self.side.outer
        strides = [self.side.strides[k] for k in outer]
        extents = [self.side.tile[k] for k in outer]
        multiple = max(1, self.group // self.word)
        if in_digits:
            multiple = self.inner // gcd(self.inner, self.word)
        elif self.sector > 1:
            # Threads that are side by side store whole sectors, if there are enough.
            by_sectors = self.sector // self.word
            found = traverse(extents, strides, words, by_sectors, period or self.word, most)
            if found is not None:
                return found
        return traverse(extents, strides, words, multiple, period or self.word, most)

    @property
    def period(self) -> int:
        """The units that what a tile stores of a row begins at multiples of."""
        return max(self.word, self.sector)

    @property
    def shorter(self) -> RowSide | None:
        """The same tile in rows without their slowest mode; `None` if they have one only."""
        first, *run = self.side.run
        if not run:
            return None
        side = replace(self.side, outer=(*self.side.outer, first), run=tuple(run))
        return replace(self, side=side, apart=0)

    def start(self, begins: Sequence[Any], rows: Sequence[Any]) -> Any:
        """Return where a row begins in memory, in units.

        Args:
            begins: where the tile begins along each mode of the problem.
            rows: the row's index in the tile along each outer mode.
        """
        side = self.side
        outer = (begins[k] + row for k, row in zip(side.outer, rows, strict=True))
        memory = OrderBy(Row(*(side.sizes[k] for k in side.order)))
        return memory.apply(*outer, *(begins[k] for k in side.run))

    def offset(self, step: Sequence[int]) -> int:
        """Return how many words of the memory a step of rows and words is."""
        *rows, words = step
        units = sum(n * self.side.strides[k] for n, k in zip(rows, self.side.outer, strict=True))
        return units // self.word + words

    def to_sector(self, place: Any, unit: int) -> Any:
        """Return how far the next sector's begin is from a place in memory, which may be one.

        Args:
            place: in memory, in words or in units.
            unit: the units of what it counts: `word` or 1.
        """
        sector = max(self.sector, self.group)
        size = sector // unit
        if size <= 1:
            return 0
        sectors = OrderBy(Row(count_tiles(self.total, sector) + 1, size))
        return sectors.inv(place + (size - 1))[0] * size - place

    def memory(self, unit: int) -> Layout:
        """Return the memory's layout, indexed by word, in the word, and in the unit."""
        counts = [count_tiles(self.total, self.word), 1]
        return OrderBy(Row(self.total, unit)).TileBy(counts, [self.word, unit])

    def flat_words(self, unit: int) -> Layout:
        """Return the memory's layout, indexed by word, and by element in the word.

        Args:
            unit: elements of a unit.
        """
        words = count_tiles(self.total, self.word)
        return OrderBy(Row(self.total * unit)).TileBy([words], [self.word * unit])

    def in_words(self) -> Layout:
        """Return the layout whose inverse is the word of a unit of the memory, and its phase."""
        return OrderBy(Row(count_tiles(self.total, self.word), self.word))
