"""A tile of a permutation by squares: how its threads load it, and take words of the output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.index.functions import minimum
from lego_mlir.kernels.permute.by_squares.config import (
    SquareConfig,
    rows_of,
    shares_words,
    squares_of,
)
from lego_mlir.kernels.permute.by_squares.registers import (
    elements,
    of_next_lane,
    register,
    shifted,
    transposed,
)
from lego_mlir.kernels.permute.by_words.stored_tile import StoredTile
from lego_mlir.kernels.permute.by_words.tile import begun
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.conditions import holds, where
from lego_mlir.kernels.permute.problem import count_tiles


@dataclass(frozen=True, slots=True)
class SquareTile(StoredTile):
    """The tile of a CTA, in shared memory as it is in the output.

    Attributes:
        config: how it is moved.
    """

    config: SquareConfig

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
        is_shared = shares_words(self.source, traversal)
        put_along = (*rows_of(self.source, self.target), self.source.side.run[-1])
        groups = []
        for conditions, steps in traversal.grouped():
            is_in = holds(traversal, conditions, (*rows, down), across)

            def load(steps: Sequence[Sequence[int]] = steps) -> tuple[Any, ...]:
                return tuple(
                    word
                    for step in steps
                    for word in self._square(rows, down, across, step, x, is_shared=is_shared)
                )

            def none(steps: Sequence[Sequence[int]] = steps) -> tuple[Any, ...]:
                zero = lg.zeros((self.config.unit,), x.dtype)
                nothing = lg.zeros((1,), "i32")[0] if square > 1 else zero
                return (nothing,) * (len(steps) * square)

            values = load() if is_in is None else lg.cond(is_in, load, none)
            groups.append((is_in, steps, values))
        for is_in, steps, values in groups:
            # All lanes come, whatever they have loaded.
            behind = [of_next_lane(word) for word in values] if is_shared else []

            def put(
                steps: Sequence[Sequence[int]] = steps,
                values: Any = values,
                behind: Sequence[Any] = behind,
            ) -> None:
                if is_shared:
                    values = self._in_rows(rows, down, steps, values, behind)
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
        apart, most = WARP_THREADS // square, squares_of(self.source)
        turns = OrderBy(Row(count_tiles(most, WARP_THREADS), square, apart))
        turn = turns.inv(across)[1]
        places = []
        for t in range(square):
            which = OrderBy(Row(2, square)).inv(turn + t)[1]
            unit = self.at(modes, rows) + (across * square + which) * self.config.pitch
            # As numbers of their own, which steps are added to.
            places.append((self._in_words().inv(unit)[0] + down).to("i64"))
        return turn.to("i32"), places

    def _square(
        self,
        rows: Sequence[Any],
        down: Any,
        across: Any,
        step: Sequence[int],
        x: Any,
        *,
        is_shared: bool,
    ) -> list[Any]:
        """Return the rows of a square of the input, a register each.

        Args:
            rows: the thread's first index along each mode that is in neither side's rows.
            down: its first square along the output's row.
            across: its first one along the input's.
            step: how far the square is from that one.
            x: the input.
            is_shared: whether a register is the word that the row begins in: the next one is what
                the next lane returns.
        """
        source, square = self.source, self.config.square
        words = source.total // square
        found = []
        for start in self._starts(rows, down, step):
            first, phase = source.in_words().inv(start)
            first = first + across + step[-1]
            if source.is_aligned:
                word = x[first.below(words), :]
                found.append(word if square == 1 else register(word))
                continue
            # A number of its own: `minimum` would look for proofs in all that it is made of.
            first = first.to("i32" if words < 1 << 31 else "i64")
            near, *far = (
                register(x[minimum(first + n, words - 1).below(words), :])
                for n in range(1 if is_shared else 2)
            )
            found.append(shifted(near, far[0], self._bits(phase)) if far else near)
        return found

    def _in_rows(
        self,
        rows: Sequence[Any],
        down: Any,
        steps: Sequence[Sequence[int]],
        near: Sequence[Any],
        far: Sequence[Any],
    ) -> list[Any]:
        """Return the rows of squares, from the words that they begin and end in.

        Args:
            rows: the thread's first index along each mode that is in neither side's rows.
            down: its first square along the output's row.
            steps: how far the squares are from that one.
            near: the words that the rows begin in.
            far: the next ones.
        """
        starts = (start for step in steps for start in self._starts(rows, down, step))
        words = self.source.in_words()
        return [
            shifted(one, other, self._bits(words.inv(start)[1]))
            for one, other, start in zip(near, far, starts, strict=True)
        ]

    def _starts(self, rows: Sequence[Any], down: Any, step: Sequence[int]) -> Iterator[Any]:
        """Yield where the rows of a square begin in the input; arguments as of `_square`."""
        source, target, square = self.source, self.target, self.config.square
        *others, low, _ = step
        index = {
            k: row + n for k, row, n in zip(rows_of(source, target), rows, others, strict=True)
        }
        begins = self.source_begins
        for r in range(square):
            along = (down + low) * square + r
            if target.units % square:
                along = minimum(along, target.units - 1)
            whole = index | self.in_modes(along)
            yield source.start(begins, [whole[k] for k in source.side.outer])

    def _bits(self, phase: Any) -> Any:
        """Return the bits of so many units, i32."""
        return (phase * (8 * self.config.unit_bytes)).to("i32")

    def words_at(self, rows: Sequence[Any], first: Any, buffer: Any) -> Callable[..., Any]:
        """Return what takes a word of a row of the output, from two words of shared memory."""
        square = self.config.square
        words = buffer.view(OrderBy(Row(self.units // square, square * self.config.unit)))
        word, phase = self._in_words().inv(self.place(rows, first))
        place = word.to("i64")
        # A word that begins with one of shared memory ends with it, too: the next one may be none.
        apart = None if self.target.is_aligned else begun(phase, square).to("i64")
        limit = self.units // square

        def at(far: int, along: Any, holds: Any = None) -> Any:
            if not isinstance(along, int):
                along = along.to("i64")
            taken = place + (far // square + along)
            if holds is not None:  # the tile's first two words are written in any case
                taken = lg.where(holds, taken, 0)
            near = words[taken.below(limit), :]
            if apart is None:
                return near
            end = words[(taken + apart).below(limit), :]
            word = shifted(register(near), register(end), self._bits(phase))
            return elements([word], buffer.dtype)

        return at

    def place(self, rows: Sequence[Any], along: Any) -> Any:
        """Return where a unit of a row of the output lies in shared memory."""
        # Units of a row are side by side in shared memory, too.
        return self.at(self.target.side.outer, rows) + along

    def _in_words(self) -> Any:
        """Return the layout whose inverse is the word of a unit of shared memory."""
        return OrderBy(Row(self.units // self.config.square, self.config.square))
