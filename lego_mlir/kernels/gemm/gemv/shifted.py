"""Fragments of an A whose rows (or columns) are not multiples of 16 bytes.

Chunks of 16 bytes are aligned in memory, so a row begins somewhere in a chunk, at its shift. Rows
whose numbers differ by a multiple of `shift_classes` have the same shift. A warp takes only such
rows, and shifts B instead: element i of chunk j of a row is at k = chunk·j + i - shift.

If A is contiguous along m, its columns have shifts, and a warp takes columns of the same shift. Its
accumulators then are those of rows that are shifted; they are shifted back where the warps along k
add them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, ceildiv
from lego_mlir.frontend import Value, choose, concatenate, zeros
from lego_mlir.index import minimum
from lego_mlir.kernels.gemm.gemv.chunks import GROUPS, THREADS
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.gemv.fragments import AcrossK, AlongK, Place
from lego_mlir.kernels.gemm.gemv.packing import Packing
from lego_mlir.kernels.gemm.kernel import Matrices
from lego_mlir.kernels.gemm.matrices import tiled
from lego_mlir.kernels.gemm.problem import Problem


class ShiftedAlongK(AlongK):
    """Fragments of an A that is contiguous along k, and whose rows have shifts.

    The K loop runs over the chunks that belong to one row whatever its shift is: all but the first
    and the last ones. The others hold the ends of the row, `chunk + k % chunk` elements, which are
    neighbours if k is taken as a ring. They are loaded one by one.
    """

    def __init__(
        self, problem: Problem, config: GemvConfig, matrices: Matrices, packed: Any = None
    ) -> None:
        super().__init__(problem, config, matrices, packed)
        self.packing = Packing(problem)
        self.classes = self.packing.classes
        self.chunks = problem.k // self.chunk  # number 0 holds the beginning of the row
        along = config.k_warps
        self.steps = OrderBy(
            Row(self.iterations + 1, along, config.stages, THREADS)
        )  # to the chunk, from 1 on

    @property
    def iterations(self) -> int:
        config = self.config
        return (self.problem.k // self.chunk - 1) // (config.tile[2] // self.chunk)

    @property
    def c_rows(self) -> Layout:
        """Tiles one after another have rows of different classes."""
        tiles, rows = self.config.tiles(self.problem)[0], self.config.tile[0]
        sizes = [tiles // self.classes, self.classes, rows]
        return OrderBy(RegP(sizes, [0, 2, 1])).GroupBy([tiles, rows])

    def rest(self, a: Any, b: Any, place: Place) -> list[Callable[[], tuple[Value, ...]]]:
        found = [lambda: self.load_ends(a, b, place)]
        done = self.iterations * (self.config.tile[2] // self.chunk)
        if done < self.chunks - 1:
            found.insert(0, lambda: self.load_some(a, b, place))
        return found

    def load_a(self, a: Any, place: Place, n: Any, stage: int) -> list[Value]:
        step = self.steps.apply(n, place.warp[1], stage, place.thread)
        return [self.chunk_of(a, row, step + 1) for row in self.a_rows(place)]

    def load_b(self, b: Any, place: Place, n: Any, stage: int) -> list[Value]:
        step = self.steps.apply(n, place.warp[1], stage, place.thread)
        return self.chunks_at(b, place, step + 1)

    def load_some(self, a: Any, b: Any, place: Place) -> tuple[Value, ...]:
        """Load the chunks of the iteration after the last one of the K loop, which has fewer."""
        count = self.chunks - 1
        outside = OrderBy(Row(ceildiv(self.steps.size, count), count))
        found: list[Value] = []
        for stage in range(self.config.stages):
            step = self.steps.apply(self.iterations, place.warp[1], stage, place.thread)

            def load(step: Any = step) -> tuple[Value, ...]:
                number = minimum(step + 1, count)
                chunks = [self.chunk_of(a, row, number) for row in self.a_rows(place)]
                return (*chunks, *self.chunks_at(b, place, number))

            found += choose(minimum(outside.inv(step)[0], 1), [load, self.nothing])
        return tuple(found)

    def load_ends(self, a: Any, b: Any, place: Place) -> tuple[Value, ...]:
        """Load the ends of the rows, by the first two threads of each group of the first warp."""
        ring = OrderBy(Row(2, self.problem.k))
        first = self.chunks * self.chunk - self.shift(place)

        def load(start: int, count: int) -> tuple[Value, ...]:
            at = [ring.inv(first + (start + i))[1] for i in range(count)]
            vectors = [[a.view(self.a)[row, k] for k in at] for row in self.a_rows(place)]
            vectors += [[b.view(self.b)[k, column] for k in at] for column in self.b_columns(place)]
            padding = [zeros([1], self.problem.dtype)[0]] * (self.chunk - count)
            return tuple(concatenate([*vector, *padding]) for vector in vectors)

        thread = OrderBy(Row(self.config.k_warps, THREADS)).apply(place.warp[1], place.thread)
        cases = [
            lambda: load(0, self.chunk),
            lambda: load(self.chunk, self.problem.k % self.chunk),
            self.nothing,
        ]
        found: tuple[Value, ...] = choose(minimum(thread, 2), cases)
        return found

    def nothing(self) -> tuple[Value, ...]:
        """Return chunks of zeros for a stage."""
        return (zeros([self.chunk], self.problem.dtype),) * (self.chunks_of_a + self.columns)

    def chunk_of(self, a: Any, row: Any, number: Any) -> Value:
        """Load a chunk of a row of A."""
        m, k = self.problem.m, self.problem.k
        memory = OrderBy(Row(m * k))
        of_memory = OrderBy(Row(ceildiv(m * k, self.chunk), self.chunk))
        first = of_memory.inv(OrderBy(Row(m, k)).apply(row, 0))[0]
        chunk: Value = a.streamed().view(tiled(memory, (self.chunk,)))[first + number, :]
        return chunk

    def chunks_at(self, b: Any, place: Place, number: Any) -> list[Value]:
        """Load the elements of B that belong to a chunk of A, by column tile."""
        if self.packed is not None:
            vectors = self.packed.view(self.packing.layout)
            return [
                vectors[self.class_of(place), column, number - 1, :]
                for column in self.b_columns(place)
            ]
        flat = OrderBy(Row(self.chunks, self.chunk))
        shift = self.shift(place)
        at = [flat.apply(number, i) - shift for i in range(self.chunk)]
        return [
            concatenate([b.view(self.b)[k, column] for k in at]) for column in self.b_columns(place)
        ]

    def shift(self, place: Place) -> Value:
        """Return the position in a chunk at which the rows of the CTA's class begin."""
        shift: Value = self.packing.shift(self.class_of(place))
        return shift

    def class_of(self, place: Place) -> Any:
        """Return the class of the CTA's rows."""
        tiles = self.config.tiles(self.problem)[0]
        return OrderBy(Row(tiles // self.classes, self.classes)).inv(place.tile[0])[1]


class ShiftedAcrossK(AcrossK):
    """Fragments of an A that is contiguous along m, and whose columns have shifts.

    The last column of A is loaded after the K loop: only there may a chunk go beyond the matrix.
    """

    def __init__(
        self, problem: Problem, config: GemvConfig, matrices: Matrices, packed: Any = None
    ) -> None:
        super().__init__(problem, config, matrices, packed)
        self.packing = Packing(problem)
        self.classes = self.packing.classes
        along = config.k_warps // self.classes
        steps = Row(self.iterations + 1, along, config.stages, THREADS, self.k_chunk)
        self.steps = OrderBy(steps)  # to the number of the column in its class
        self.vectors = OrderBy(Row(self.iterations + 1, along, config.stages, THREADS))
        self.along = OrderBy(Row(along, self.classes))

    @property
    def iterations(self) -> int:
        return (self.problem.k - 1) // self.config.tile[2]

    def rest(self, a: Any, b: Any, place: Place) -> list[Callable[[], tuple[Value, ...]]]:
        return [lambda: self.load_rest(a, b, place)]

    def load_a(self, a: Any, place: Place, n: Any, stage: int) -> list[Value]:
        m, chunk = self.problem.m, self.chunk
        last = (self.problem.k * m) // chunk - 1
        chunks = a.view(tiled(OrderBy(Row(self.problem.k * m)), (chunk,)))
        columns = self.a_columns(place, n, stage)
        return [
            chunks[minimum(self.chunk_number(place, run, k), last), :]
            for run in range(self.rows // self.pairs)
            for k in columns
        ]

    def load_b(self, b: Any, place: Place, n: Any, stage: int) -> list[Value]:
        if self.packed is not None:
            vectors = self.packed.view(self.packing.layout)
            warp, of_class = self.along.inv(place.warp[1])
            number = self.vectors.apply(n, warp, stage, place.thread)
            return [vectors[of_class, column, number, :] for column in self.b_columns(place)]
        at = self.a_columns(place, n, stage)
        return [
            concatenate([b.view(self.b)[k, column] for k in at]) for column in self.b_columns(place)
        ]

    def load_rest(self, a: Any, b: Any, place: Place) -> tuple[Value, ...]:
        """Load the columns of A after the K loop, and the rows of B; nothing beyond the last."""
        k, chunk = self.problem.k, self.chunk
        total = k * self.problem.m
        chunks = a.view(tiled(OrderBy(Row(total)), (chunk,)))
        outside = OrderBy(Row(ceildiv(self.steps.size * self.classes, k), k))
        b = b.view(self.b)
        found: list[Value] = []
        for stage in range(self.config.stages):
            columns = self.a_columns(place, self.iterations, stage)
            empty = [minimum(outside.inv(at)[0], 1) for at in columns]
            for run, (at, is_outside) in product(
                range(self.rows // self.pairs), list(zip(columns, empty, strict=True))
            ):

                def load_a(run: int = run, at: Any = at) -> Value:
                    number = minimum(self.chunk_number(place, run, at), ceildiv(total, chunk) - 1)
                    value: Value = chunks[number, :]
                    return value

                found.append(
                    choose(is_outside, [load_a, lambda: zeros([chunk], self.problem.dtype)])
                )
            for column in self.b_columns(place):
                elements = [
                    choose(
                        is_outside,
                        [
                            partial(b.__getitem__, (minimum(at, k - 1), column)),
                            self.zero,
                        ],
                    )
                    for at, is_outside in zip(columns, empty, strict=True)
                ]
                found += [concatenate(elements)]
        return tuple(found)

    def zero(self) -> Value:
        """Return an element that is 0."""
        return zeros([1], self.problem.dtype)[0]

    def a_columns(self, place: Place, n: Any, stage: int) -> list[Any]:
        """Return the columns of A whose chunks a lane loads in a stage."""
        warp, of_class = self.along.inv(place.warp[1])
        whole = OrderBy(Row(self.steps.size, self.classes))
        return [
            whole.apply(self.steps.apply(n, warp, stage, place.thread, neighbour), of_class)
            for neighbour in range(self.k_chunk)
        ]

    def chunk_number(self, place: Place, run: int, column: Any) -> Any:
        """Return the number in memory of a chunk of a column of A."""
        m, k, chunk = self.problem.m, self.problem.k, self.chunk
        runs = self.rows // self.pairs
        of_memory = OrderBy(Row(ceildiv(m * k, chunk), chunk))
        first = of_memory.inv(OrderBy(Row(k, m)).apply(minimum(column, k - 1), 0))[0]
        # Tiles overlap by a chunk, so their numbers do not follow from a layout.
        tile = place.tile[0] * (self.config.output_rows(self.problem) // chunk)
        inside = OrderBy(Row(self.config.warps[0], runs, GROUPS))
        return first + tile + inside.apply(place.warp[0], run, place.group)

    def tile_row(self, row: Any, warp: int) -> Any:
        """The rows of a warp along k are shifted as its columns of A."""
        start = OrderBy(Row(self.classes, self.problem.m)).apply(warp % self.classes, 0)
        return row + start % self.chunk
