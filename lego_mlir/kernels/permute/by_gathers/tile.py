"""A tile of a permutation by gathered words: how its threads load it, and compose words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import MAX_CTA_THREADS
from lego_mlir.kernels.permute.by_squares.registers import REGISTER, elements, register
from lego_mlir.kernels.permute.by_words.stored_tile import StoredTile
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.conditions import holds, where
from lego_mlir.kernels.permute.problem import count_tiles


@dataclass(frozen=True, slots=True)
class GatherTile(StoredTile):
    """The tile of a CTA, in shared memory as it is in the input.

    Attributes:
        unit_bytes: bytes of a unit.
    """

    is_twofold: ClassVar[bool] = True
    unit_bytes: int

    @property
    def phase(self) -> Any:
        """The unit of a chunk that the tile begins with in the input."""
        source = self.source
        if source.is_aligned:
            return 0
        start = source.start(self.begins, [0] * len(source.side.outer))
        return source.in_words().inv(start)[1]

    def at(self, modes: Sequence[int], index: Sequence[Any]) -> Any:
        """Return where a unit lies in shared memory, by its index along some modes of the tile."""
        terms = (i * self.pitches[k] for k, i in zip(modes, index, strict=True))
        return sum(terms, start=self.phase)

    def read(self, traversal: Traversal, thread: Any, x: Any, buffer: Any) -> None:
        """Begin the copies of the chunks that the input's rows touch.

        Args:
            traversal: how threads go over them.
            thread: the number of the thread.
            x: the input, indexed as `RowSide.flat_words`.
            buffer: shared memory, indexed alike.
        """
        source = self.source
        chunk, limit = source.word, self.units // source.word
        whole = source.total // chunk  # of what is left, `read_last` copies each unit
        rows, column = traversal.place(thread)
        first = source.in_words().inv(source.start(self.begins, rows))[0] + column
        put = OrderBy(Row(limit, chunk)).inv(self.at(source.side.outer, rows))[0] + column
        for conditions, steps in traversal.grouped():
            is_in = holds(traversal, conditions, rows, column)

            def copy(steps: Sequence[Sequence[int]] = steps) -> None:
                for step in steps:
                    far = source.offset(step)

                    def copy_one(far: int = far, step: Sequence[int] = step) -> None:
                        # Computed here: what is promised of a value holds where it is computed.
                        to = put + (self._far(source, step) // chunk + step[-1])
                        taken = (first + far).below(whole)
                        lg.copy_async(
                            buffer, (to.below(limit), slice(None)), x, (taken, slice(None))
                        )

                    where(None if source.is_aligned else first + far < whole, copy_one)

            where(is_in, copy)

    def words_at(self, rows: Sequence[Any], first: Any, buffer: Any) -> Callable[..., Any]:
        """Return what gathers a word of a row of the output from shared memory."""
        target, word = self.target, self.target.word
        begin, apart = self.at(target.side.outer, rows), self.pitches[target.side.run[0]]
        half = word // 2
        # Neighbours take the other half of a word of two registers first: they would meet in banks.
        turned: Any = 0
        if word * self.unit_bytes > REGISTER:
            turned = OrderBy(Row(count_tiles(MAX_CTA_THREADS, 2), 2)).inv(lg.thread_id())[1]
        is_turned = None if isinstance(turned, int) else turned > 0
        if len(target.side.run) == 1:
            start = begin + first * apart
            near, far = ((start + n * turned * apart).to("i64") for n in (half, -half))
            places = [(far if j >= half else near) + j * apart for j in range(word)]
        else:
            places = [(begin + self._along(first + j)).to("i64") for j in range(word)]
            if is_turned is not None:
                others = zip(places[half:] + places[:half], places, strict=True)
                places = [lg.where(is_turned, one, other) for one, other in others]

        def at(far: int, along: Any, holds: Any = None) -> Any:
            assert holds is None  # rows have no groups of words here
            # Steps along a row change the index of its slowest mode only.
            more = far + along * word // target.inner * apart
            units = [buffer[(place + more).below(self.units), :] for place in places]
            if is_turned is None:
                return lg.concatenate(units)
            low, high = (register(lg.concatenate(u)) for u in (units[:half], units[half:]))
            pair = [lg.where(is_turned, high, low), lg.where(is_turned, low, high)]
            return elements(pair, buffer.dtype)

        return at

    def place(self, rows: Sequence[Any], along: Any) -> Any:
        """Return where a unit of a row of the output lies in shared memory."""
        return self.at(self.target.side.outer, rows) + self._along(along)

    def _along(self, along: Any) -> Any:
        """Return how far a unit of a row of the output is from its first one in shared memory."""
        side, target = self.target.side, self.target
        if len(side.run) == 1:
            return along * self.pitches[side.run[0]]
        # Threads count from sectors, and beyond the ends of rows.
        most = count_tiles(2 * (target.units + target.period), target.inner)
        index = OrderBy(Row(most, *(side.tile[k] for k in side.run[1:]))).inv(along)
        return sum(i * self.pitches[k] for k, i in zip(side.run, index, strict=True))
