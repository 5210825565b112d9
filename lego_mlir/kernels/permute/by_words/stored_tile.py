"""What a tile in shared memory stores of the output's rows: whole words, then what is left over.

All distances are known: a thread finds out once which words it goes to and where their units lie in
shared memory, and takes its steps from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lego_mlir import frontend as lg
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.index.functions import minimum
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.tiled_mode import TiledMode
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.conditions import both, end_of_row, holds, where


@dataclass(frozen=True, slots=True)
class StoredTile(ABC):
    """The tile of a CTA.

    Attributes:
        source: the tile in the input.
        target: the tile in the output.
        pitches: units from neighbour to neighbour in shared memory, of each mode.
        modes: how tiles cover each mode.
        blocks: the tile's number along each of them, as values of the kernel.
        units: of shared memory.
        is_twofold: whether tiles of which others store some rows have code of their own. It is
            longer, which takes more time than conditions where a word is taken at once.
    """

    is_twofold: ClassVar[bool] = False

    source: RowSide
    target: RowSide
    pitches: Sequence[int]
    modes: Sequence[TiledMode]
    blocks: Sequence[Any]
    units: int

    @property
    def begins(self) -> list[Any]:
        """Where the tile begins along each mode."""
        return [mode.begin(block) for mode, block in zip(self.modes, self.blocks, strict=True)]

    @property
    def _joined_modes(self) -> range:
        """The modes of the input that are one of the tile; none if each is one of its own."""
        joined, first = len(self.source.side.sizes), len(self.target.side.sizes) - 1
        return range(first, joined) if first < joined - 1 else range(0)

    def _in_joined(self) -> Layout:
        """Return the layout of the modes that are joined, as one."""
        return OrderBy(Row(*(self.source.side.sizes[k] for k in self._joined_modes)))

    @property
    def source_begins(self) -> list[Any]:
        """Where the tile begins along each mode of the input: those that are joined are whole."""
        joined = self._joined_modes
        return [*self.begins[: joined.start], *(0 for _ in joined)] if joined else self.begins

    def in_modes(self, along: Any) -> dict[int, Any]:
        """Return the index in the tile, or in modes that are joined, of a unit of a row."""
        side, joined = self.target.side, self._joined_modes
        if not joined:
            run = OrderBy(Row(*(side.tile[k] for k in side.run)))
            return dict(zip(side.run, run.inv(along), strict=True))
        first = joined.start
        at = (self.begins[first] + along).below(side.sizes[first])
        return dict(zip(joined, self._in_joined().inv(at), strict=True))

    def _joined(self, index: Mapping[int, Any]) -> dict[int, Any]:
        """Return an index of the input's modes as one of the tile's modes."""
        joined = self._joined_modes
        if not joined:
            return dict(index)
        one = self._in_joined().apply(*(index[k] for k in joined))
        return {k: i for k, i in index.items() if k not in joined} | {joined.start: one}

    def read_last(self, thread: Any, flat: Any, buffer: Any, *, fills: bool = False) -> None:
        """Put the units of the input's last word where they belong, if memory has some of it only.

        Args:
            thread: the number of the thread.
            flat: the input, indexed by unit and in the unit.
            buffer: shared memory, indexed alike.
            fills: whether that word lies in shared memory as it is in the input: what is behind
                its units is written, too, since a vector may have it beside them.
        """
        total, side = self.source.total, self.source.side
        left = total % self.source.word
        if not left:
            return

        @lg.if_(thread < (self.source.word if fills else left))
        def _() -> None:
            nth = minimum(thread, left - 1) if fills else thread
            last = nth + (total - left)
            index = OrderBy(Row(*(side.sizes[k] for k in side.order))).inv(last)
            found = self._joined(dict(zip(side.order, index, strict=True)))
            begins, tile = self.begins, self.target.side.tile
            inside = {k: i - begins[k] for k, i in found.items()}
            is_in: Any = None
            for k, i in inside.items():
                is_in = both(is_in, (i >= 0) & (i < tile[k]))

            @lg.if_(is_in)
            def _() -> None:
                at = self.at(tuple(inside), tuple(inside.values()))
                unit = (at + (thread - nth)).below(self.units)
                buffer[unit, :] = flat[last.below(total), :]

    def write(self, traversal: Traversal, thread: Any, buffer: Any, y: Any) -> None:
        """Store the words that lie in what the tile stores of the output's rows.

        Args:
            traversal: how threads go over the rows.
            thread: the number of the thread.
            buffer: shared memory, indexed by unit and in the unit.
            y: the output, indexed as `RowSide.flat_words`.
        """
        target, word = self.target, self.target.word
        rows, column = traversal.place(thread)
        start = target.start(self.begins, rows)
        first, end = self._stored(start)
        first = first + self._to_word(start + first)
        is_grouped = target.sector == 1 < target.group
        # Of a row, or of the groups that it touches.
        nth = 0 if is_grouped else column
        first = first + nth * word
        word_at = self.words_at(rows, first, buffer)
        at = target.in_words().inv(start + first)[0]

        def store_all(*, is_cut: bool) -> None:
            for conditions, steps in traversal.grouped():
                is_in = holds(traversal, conditions, rows, column)
                along = steps[0][-1]
                is_sure = not is_cut and along + traversal.threads[-1] <= target.sure
                if not is_grouped and not is_sure:
                    is_in = both(is_in, first + (along + 1) * word <= end)

                def store(steps: Sequence[Sequence[int]] = steps) -> None:
                    for step in steps:
                        far = self._far(target, step)
                        row = at + target.offset((*step[:-1], 0))
                        is_one = self._is_own(rows, step) if is_cut else None
                        along: Any = step[-1]
                        if is_grouped:
                            along = along + column + target.lead(row)
                            last = start + target.offset((*step[:-1], 0)) * word + end
                            is_one = both(is_one, target.is_stored(along, row + along, last))

                        # Words that are taken under no condition are taken while others are: the
                        # tile's first one where there is none.
                        value = word_at(far, along, is_one if is_grouped else None)

                        def put(row: Any = row, along: Any = along, value: Any = value) -> None:
                            y[(row + along).below(target.total // word), :] = value

                        where(is_one, put)

                where(is_in, store)

        is_cut = self._is_cut
        if is_cut is None:
            store_all(is_cut=False)
        elif self.is_twofold or not any(self.modes[k].is_cut for k in target.side.outer):
            # Most tiles have few conditions: their words are taken and stored side by side.
            lg.if_(~is_cut)(lambda: store_all(is_cut=False))
            lg.if_(is_cut)(lambda: store_all(is_cut=True))
        else:
            store_all(is_cut=True)

    def write_ends(self, traversal: Traversal, thread: Any, buffer: Any, flat: Any) -> None:
        """Store what is left over at both ends of the output's rows, unit by unit.

        Args:
            traversal: how threads go over the ends of rows.
            thread: the number of the thread.
            buffer: shared memory, indexed by unit and in the unit.
            flat: the output, indexed alike.
        """
        target, word = self.target, self.target.word
        rows, number = traversal.place(thread)
        start = target.start(self.begins, rows)
        first, end = self._stored(start)
        to_word = self._to_word(start + first)
        for conditions, steps in traversal.grouped():
            # Ends of a row are no part of it: their distance along the row is another number.
            nth = minimum(number + steps[0][-1], target.ends - 1)
            is_in = holds(traversal, conditions, rows, number)
            along: Any = None
            if target.group == 1:
                along, is_one = end_of_row(nth, end - first, to_word, target, word)
                is_in = both(is_in, is_one)

            def store(
                steps: Sequence[Sequence[int]] = steps, along: Any = along, nth: Any = nth
            ) -> None:
                for step in steps:
                    row = (*step[:-1], 0)
                    begin = start + first + target.offset(row) * word
                    is_one, unit = self._is_own(rows, row), along
                    if target.group > 1:
                        unit, is_end = target.end_of_sectors(nth, begin, end - first)
                        is_one = both(is_one, is_end)

                    def put(row: Sequence[int] = row, unit: Any = unit, begin: Any = begin) -> None:
                        place = self.place(rows, first + unit) + self._far(target, row)
                        value = buffer[place.below(self.units), :]
                        flat[(begin + unit).below(target.total), :] = value

                    where(is_one, put)

            where(is_in, store)

    @property
    def has_ends(self) -> Any:
        """Whether the tile has ends of rows to store; `None` if it may have, as all tiles."""
        if self.target.sector == 1:
            return None
        first, last = self._ends
        return first | last

    @property
    def _ends(self) -> tuple[Any, Any]:
        """Whether rows of the output begin in the tile, and whether they end there."""
        along = self.target.side.run[0]
        return self.blocks[along] < 1, self.blocks[along] >= self.modes[along].count - 1

    def _stored(self, start: Any) -> tuple[Any, Any]:
        """Return from where to where the tile stores a row, in units from the row's begin.

        Args:
            start: where the row begins in memory, in units.
        """
        target, along = self.target, self.target.side.run[0]
        skipped = self.modes[along].skipped(self.blocks[along]) * target.inner
        if target.sector == 1:
            return skipped, target.units
        behind = target.advance * target.inner
        is_first, is_last = self._ends
        first = lg.where(is_first, 0, skipped + target.to_sector(start + skipped, 1))
        end = behind + target.to_sector(start + behind, 1)
        return first, lg.where(is_last, target.units, end)

    def _to_word(self, place: Any) -> Any:
        """Return how many units are from a place in the output to the next word's begin there."""
        target, word = self.target, self.target.word
        if target.is_aligned or word == 1:
            return 0
        return target.in_words().inv(place + (word - 1))[0] * word - place

    @property
    def _is_cut(self) -> Any:
        """Whether another tile stores some of the tile; `None` if none does of any tile."""
        found: Any = None
        for k in (*self.target.side.outer, self.target.side.run[0]):
            if self.modes[k].is_cut:
                is_last = self.blocks[k] >= self.modes[k].regular
                found = is_last if found is None else found | is_last
        return found

    def _is_own(self, rows: Sequence[Any], step: Sequence[int]) -> Any:
        """Return whether no other tile stores a row; `None` if none stores any."""
        found: Any = None
        for k, row, distance in zip(self.target.side.outer, rows, step, strict=False):
            if self.modes[k].is_cut:
                found = both(found, row + distance >= self.modes[k].skipped(self.blocks[k]))
        return found

    def _far(self, side: RowSide, step: Sequence[int]) -> int:
        """Return how many units of shared memory a step of rows is."""
        pitches = self.pitches
        return sum(n * pitches[k] for n, k in zip(step[:-1], side.side.outer, strict=True))

    @abstractmethod
    def words_at(self, rows: Sequence[Any], first: Any, buffer: Any) -> Callable[..., Any]:
        """Return what takes a word of a row of the output from shared memory.

        Args:
            rows: the thread's first row along each outer mode.
            first: the unit of the row that its first word begins with.
            buffer: shared memory, indexed by unit and in the unit.

        Returns:
            A function of how many units of shared memory a row is from the first one, how many
            words a word is from the first one of its row, and the condition under which the row has
            that word: where it does not hold, another one is taken. `None` always holds.
        """

    @abstractmethod
    def place(self, rows: Sequence[Any], along: Any) -> Any:
        """Return where a unit of a row of the output lies in shared memory."""

    def at(self, modes: Sequence[int], index: Sequence[Any]) -> Any:
        """Return where a unit lies in shared memory, by its index along some modes of the tile."""
        pitches = self.pitches
        terms = (i * pitches[k] for k, i in zip(modes, index, strict=True))
        return sum(terms, start=0)
