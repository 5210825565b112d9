"""A tile of a permutation by squares: how its threads load it, and take words of the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.index.functions import minimum
from lego_mlir.kernels.permute.by_squares.config import rows_of
from lego_mlir.kernels.permute.by_squares.registers import (
    elements,
    register,
    shifted,
    transposed,
)
from lego_mlir.kernels.permute.by_squares.stored_tile import StoredTile
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.conditions import both, holds, where
from lego_mlir.kernels.permute.problem import count_tiles


@dataclass(frozen=True, slots=True)
class SquareTile(StoredTile):
    """The tile of a CTA, in shared memory as it is in the output."""

    def read(self, traversal: Traversal, thread: Any, x: Any, buffer: Any) -> None:
        """Load squares, transpose them, and put their columns into shared memory.

        Args:
            traversal: how threads go over the squares.
            thread: the number of the thread.
            x: the input, indexed as `RowSide.flat_words`.
            buffer: shared memory, indexed by word, and by element in the word.
        """
        square = self.config.square
        (*rows, down), across = traversal.place(thread)
        turn, places = self._columns(rows, down, across)
        put_along = (*rows_of(self.source, self.target), self.source.side.run[-1])
        groups = []
        for conditions, steps in traversal.grouped():
            is_in = holds(traversal, conditions, (*rows, down), across)

            def load(steps: Sequence[Sequence[int]] = steps) -> tuple[Any, ...]:
                squares = _Squares(self, traversal, rows, down, across, x)
                return tuple(word for step in steps for word in squares.load(step))

            def none(steps: Sequence[Sequence[int]] = steps) -> tuple[Any, ...]:
                zero = lg.zeros((self.config.unit,), x.dtype)
                nothing = lg.zeros((1,), "i32")[0] if square > 1 else zero
                return (nothing,) * (len(steps) * square)

            values = load() if is_in is None else lg.cond(is_in, load, none)
            groups.append((is_in, steps, values))
        for is_in, steps, values in groups:

            def put(steps: Sequence[Sequence[int]] = steps, values: Any = values) -> None:
                for n, step in enumerate(steps):
                    columns = transposed(values[n * square : (n + 1) * square], turn)
                    far = sum(
                        i * self.pitches[k]
                        for i, k in zip((*step[:-2], step[-1] * square), put_along, strict=True)
                    )
                    for place, column in zip(places, columns, strict=True):
                        word = place + (far // square + step[-2])
                        value = column if square == 1 else elements([column], x.dtype)
                        buffer[word.below(self.units // square), :] = value

            where(is_in, put)

    def _columns(self, rows: Sequence[Any], down: Any, across: Any) -> tuple[Any, list[Any]]:
        """Return which column of its squares a thread puts first, and the words of all columns.

        Neighbours put other columns first: they would meet in banks.

        Args:
            rows: the thread's first index along each mode that is in neither side's rows.
            down: its first square along the output's row.
            across: its first one along the input's.
        """
        square, modes = self.config.square, rows_of(self.source, self.target)
        apart, most = WARP_THREADS // square, count_tiles(self.source.units, square)
        turns = OrderBy(Row(count_tiles(most, WARP_THREADS), square, apart))
        turn = turns.inv(across)[1]
        places = []
        for t in range(square):
            which = OrderBy(Row(2, square)).inv(turn + t)[1]
            unit = self._at(modes, rows) + (across * square + which) * self.config.pitch
            # As numbers of their own, which steps are added to.
            places.append((self._in_words().inv(unit)[0] + down).to("i64"))
        return turn.to("i32"), places

    def read_last(self, thread: Any, flat: Any, buffer: Any) -> None:
        """Put the units of the input's last word where they belong, if memory has some of it only.

        Args:
            thread: the number of the thread.
            flat: the input, indexed by unit and in the unit.
            buffer: shared memory, indexed alike.
        """
        total, side = self.source.total, self.source.side
        left = total % self.config.square
        if not left:
            return
        lg.barrier()

        @lg.if_(thread < left)
        def _() -> None:
            at = thread + (total - left)
            index = OrderBy(Row(*(side.sizes[k] for k in side.order))).inv(at)
            begins = self.begins
            inside = [i - begins[k] for k, i in zip(side.order, index, strict=True)]
            is_in: Any = None
            for k, i in zip(side.order, inside, strict=True):
                is_in = both(is_in, (i >= 0) & (i < side.tile[k]))

            @lg.if_(is_in)
            def _() -> None:
                place = self._at(side.order, inside).below(self.units)
                buffer[place, :] = flat[at.below(total), :]


@dataclass(frozen=True, slots=True)
class _Squares:
    """The squares that a thread loads.

    Attributes:
        tile: the tile.
        traversal: how threads go over its squares.
        rows: the thread's first index along each mode that is in neither side's rows.
        down: its first square along the output's row.
        across: its first one along the input's.
        x: the input, indexed as `RowSide.flat_words`.
        known: words that rows of squares begin in and the bits inside of them, by where a square
            is: others are at constant distances.
        starts: the units that rows begin with.
    """

    tile: SquareTile
    traversal: Traversal
    rows: Sequence[Any]
    down: Any
    across: Any
    x: Any
    known: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict)
    starts: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def load(self, step: Sequence[int]) -> list[Any]:
        """Return the rows of a square of the input, a register each.

        Args:
            step: how far the square is from the thread's first one.
        """
        source, square, x = self.tile.source, self.tile.config.square, self.x
        words, right = source.total // square, step[-1]
        is_last = self._is_last(step)
        found = []
        for r in range(square):
            first, phase, far = self._row(step, r, is_near=not is_last)
            first = first + (far + right)
            if source.is_aligned:
                word = x[first.below(words), :]
                found.append(word if square == 1 else register(word))
                continue
            pair = [first, first + 1]
            if is_last:
                pair = [minimum(word, words - 1) for word in pair]
            near, next_one = (register(x[word.below(words), :]) for word in pair)
            found.append(shifted(near, next_one, phase))
        return found

    def _is_last(self, step: Sequence[int]) -> bool:
        """Return whether what a square loads may be beyond the tile's last row, or behind memory.

        A word behind any other row is one of the next row.
        """
        source, target, square = self.tile.source, self.tile.target, self.tile.config.square
        if source.units < 4 * square:
            return not source.is_aligned or target.units % square > 0
        is_end = [
            n + threads >= extent
            for n, threads, extent in zip(
                step, self.traversal.threads, self.traversal.extents, strict=False
            )
        ]
        return (target.units % square > 0 and is_end[-1]) or (not source.is_aligned and all(is_end))

    def _row(self, step: Sequence[int], r: int, *, is_near: bool) -> tuple[Any, Any, int]:
        """Return a word of the input, the bits that a row begins inside of it, and its distance.

        Args:
            step: how far the square is from the thread's first one.
            r: the row of the square.
            is_near: whether the word may be one of another square at a constant distance.
        """
        source, target, square = self.tile.source, self.tile.target, self.tile.config.square
        *others, low, _ = step
        strides, modes, first = source.side.strides, rows_of(source, target), target.side.run[0]
        far = sum(n * strides[k] for n, k in zip(others, modes, strict=True))
        inner = target.inner
        if is_near and low * square % inner == 0:
            far += low * square // inner * strides[first]
            low = 0
        start = self._start(low, r, is_near=is_near)
        part, whole = far % square, far // square * square
        key = (part, low, r, is_near)
        if key not in self.known:
            word, phase = source.in_words().inv(start + part)
            bits = (phase * (8 * self.tile.config.unit_bytes)).to("i32")
            self.known[key] = ((word + self.across).to("i64"), bits)
        word, bits = self.known[key]
        return word, bits, whole // square

    def _start(self, low: int, r: int, *, is_near: bool) -> Any:
        """Return where a row begins in memory, of a square that is so far along the output's row.

        Args:
            low: squares from the thread's first one.
            r: the row of the square.
            is_near: whether it is surely a row of the tile.
        """
        key = (low, r, is_near)
        if key not in self.starts:
            source, target, square = self.tile.source, self.tile.target, self.tile.config.square
            along = (self.down + low) * square + r
            if not is_near and target.units % square:
                along = minimum(along, target.units - 1)
            run = OrderBy(Row(*(target.side.tile[k] for k in target.side.run)))
            index = dict(zip(rows_of(source, target), self.rows, strict=True))
            index |= dict(zip(target.side.run, run.inv(along), strict=True))
            self.starts[key] = source.start(self.tile.begins, [index[k] for k in source.side.outer])
        return self.starts[key]
