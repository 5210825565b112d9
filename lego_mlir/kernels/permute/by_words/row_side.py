"""A tile in one of the two memories of a permutation, as rows of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.kernels.permute.by_words.traversal import Traversal, traverse
from lego_mlir.kernels.permute.problem import count_tiles
from lego_mlir.kernels.permute.runs import Side


@dataclass(frozen=True, slots=True)
class RowSide:
    """A tile in one of the two memories, as rows of words.

    Attributes:
        side: the tile; a row is its run.
        word: units of a word.
        sector: units that what a tile stores of a row begins and ends at multiples of, in memory,
            apart from the row's own ends; a multiple of `word`, or 1 if it is the tile's own row.
    """

    side: Side
    word: int
    sector: int = 1

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
        return self.side.tile[self.side.run[0]] - count_tiles(self.sector - 1, self.inner)

    @property
    def is_whole(self) -> bool:
        """Whether all tiles that have no end of a row store equally many sectors of it."""
        return self.advance * self.inner % self.sector == 0

    @property
    def stored(self) -> int:
        """The most words that a tile stores of a row if it has no end of it."""
        if self.sector == 1:
            return self.whole
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
        multiple = self.inner // gcd(self.inner, self.word) if in_digits else 1
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
        return replace(self, side=side)

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
        size = self.sector // unit
        if size <= 1:
            return 0
        sectors = OrderBy(Row(count_tiles(self.total, self.sector) + 1, size))
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
