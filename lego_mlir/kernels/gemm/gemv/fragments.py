"""The fragments of a GEMM with few columns of C: how a warp loads them and multiplies them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, ceildiv
from lego_mlir.frontend import Value, concatenate, mma
from lego_mlir.hardware.limits import MMA_K_BYTES
from lego_mlir.index import minimum
from lego_mlir.kernels.gemm.gemv.chunks import CHUNK_BYTES, GROUPS, HALVES, THREADS, chunk_elements
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.kernel import Matrices
from lego_mlir.kernels.gemm.matrices import tile_index, tiled_matrices
from lego_mlir.kernels.gemm.problem import Problem

_STEPS = CHUNK_BYTES * THREADS // MMA_K_BYTES
"""Instructions along k that multiply chunks which are contiguous along k."""

_WORDS = OrderBy(RegP([_STEPS, 2, HALVES], [2, 0, 1]))
"""From (instruction along k, half of its k, half of its rows) to the word in the chunks of two
rows, one behind the other."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread is.

    Attributes:
        batch: the GEMM of the batch; nothing without a batch.
        tile: the CTA's tile of C, down and across.
        warp: the warp's number down the tile, and along k among those of all slices of k.
        along: its number along k in its CTA.
        group: the lane's group.
        thread: the lane's number in its group.
        sizes: rows and columns of C, values of the kernel where only the launch knows them.
    """

    batch: Sequence[Any]
    tile: tuple[Any, Any]
    warp: tuple[Any, Any]
    along: Any
    group: Any
    thread: Any
    sizes: Sequence[Any]


class Fragments:
    """How a warp loads its fragments of A and B, and multiplies them.

    Attributes:
        tiles: the `mma` tiles of a warp, by number of rows and of columns.
        packed: the workspace of a packed B, in the kernel; `None` if B is not packed.
    """

    def __init__(
        self, problem: Problem, config: GemvConfig, matrices: Matrices, packed: Any = None
    ) -> None:
        self.problem, self.config, self.packed = problem, config, packed
        self.rows, self.columns = config.row_tiles(problem), config.column_tiles()
        self.tiles = list(product(range(self.rows), range(self.columns)))
        self.chunk = chunk_elements(problem)
        self.a, self.b = matrices[:2]

    @property
    def iterations(self) -> int:
        """The iterations of the K loop that load whole chunks, without masks."""
        return self.problem.k // self.config.tile[2]

    def rest(self, a: Any, b: Any, place: Place) -> list[Callable[[], tuple[Value, ...]]]:
        """Return functions that load the chunks which are left after the K loop."""
        if self.problem.k % self.config.tile[2] == 0:
            return []
        return [lambda: self.load(a, b, place, self.iterations)]

    def load(self, a: Any, b: Any, place: Place, n: Any) -> tuple[Value, ...]:
        """Load the chunks of A and B of iteration `n`, stage by stage."""
        found = []
        for stage in range(self.config.stages):
            found += self.load_a(a, place, n, stage) + self.load_b(b, place, n, stage)
        return tuple(found)

    def multiply(self, chunks: Sequence[Value], totals: Sequence[Value]) -> tuple[Value, ...]:
        """Return the accumulators after the instructions on the chunks of one or more stages."""
        found = dict(zip(self.tiles, totals, strict=True))
        for stage in batched(chunks, self.chunks_of_a + self.columns):
            operands_a = self.operands_a(stage[: self.chunks_of_a])
            operands_b = self.operands_b(stage[self.chunks_of_a :])
            for row, column in self.tiles:
                for x, y in zip(operands_a[row], operands_b[column], strict=True):
                    found[row, column] = mma(x, y, found[row, column])
        return tuple(found.values())

    @property
    def chunks_of_a(self) -> int:
        """The chunks of A that a lane loads in a stage."""
        raise NotImplementedError

    def global_row(self, tile: Any, row: Any) -> Value:
        """Return the row of C of a row of a CTA tile, which may lie beyond the last one."""
        whole: Value = self.c_rows.apply(tile, row)
        return whole

    @property
    def c_rows(self) -> Layout:
        """The layout from a CTA tile's number down C, and a row in it, to the row of C."""
        tiles, rows = self.config.tiles(self.problem)[0], self.config.output_rows(self.problem)
        return OrderBy(Row(tiles, rows))

    def tile_row(self, row: Any, warp: int) -> Any:
        """Return where a warp along k has a row of the CTA's output among its own rows."""
        return row

    def load_a(self, a: Any, place: Place, n: Any, stage: int) -> list[Value]:
        """Load a stage's chunks of A."""
        raise NotImplementedError

    def load_b(self, b: Any, place: Place, n: Any, stage: int) -> list[Value]:
        """Load a stage's chunks of B, by column tile."""
        raise NotImplementedError

    def operands_a(self, chunks: Sequence[Value]) -> list[list[Value]]:
        """Return operands A of a stage, by row tile and instruction along k."""
        raise NotImplementedError

    def operands_b(self, chunks: Sequence[Value]) -> list[list[Value]]:
        """Return operands B of a stage, by column tile and instruction along k."""
        raise NotImplementedError

    def chunks_of_b(self, b: Any, place: Place, n: Any, stage: int, elements: int) -> list[Value]:
        """Load the chunks of B, of so many elements along k, of a stage, by column tile.

        Columns beyond the last one are the last one again, which costs less than a mask.
        """
        config = self.config
        levels = [(config.k_warps, 1), (config.stages, 1), (THREADS, 1), (elements, 1)]
        chunks = b.view(tiled_matrices(self.b, *levels))
        inside = [(place.warp[1], 0), (stage, 0), (place.thread, 0), (slice(None), 0)]
        return [
            chunks[tile_index(place.batch, (n, column), *inside)]
            for column in self.b_columns(place)
        ]

    def elements_of_b(self, b: Any, place: Place, at: Sequence[Any]) -> list[Value]:
        """Load these rows of B one by one, by column tile."""
        rows = b.view(self.b)
        return [concatenate([rows[k, column] for k in at]) for column in self.b_columns(place)]

    def b_columns(self, place: Place) -> list[Any]:
        """Return the lane's column of B in each column tile."""
        n, columns = self.problem.n, self.config.tile[1]
        whole = OrderBy(Row(ceildiv(n, columns), self.columns, GROUPS))
        found = [whole.apply(place.tile[1], tile, place.group) for tile in range(self.columns)]
        if n % columns == 0:
            return found
        return [minimum(column, place.sizes[1] - 1) for column in found]


class AlongK(Fragments):
    """Fragments of an A that is contiguous along k.

    A load of a warp takes 64 bytes of each of eight rows, so loads are streamed: they bring in what
    lies behind in the row.

    A lane's chunk of a row holds that row's elements of several instructions. Which k these are
    does not matter, since its chunk of a column of B holds the same ones.
    """

    def load_a(self, a: Any, place: Place, n: Any, stage: int) -> list[Value]:
        config = self.config
        levels = [(1, config.k_warps), (1, config.stages), (1, THREADS), (1, self.chunk)]
        chunks = a.streamed().view(tiled_matrices(self.a, *levels))
        inside = [(0, place.warp[1]), (0, stage), (0, place.thread), (0, slice(None))]
        return [chunks[tile_index(place.batch, (row, n), *inside)] for row in self.a_rows(place)]

    @property
    def chunks_of_a(self) -> int:
        return self.rows * HALVES

    def a_rows(self, place: Place) -> list[Any]:
        """Return the lane's rows of A; rows beyond the last one are the last one again."""
        m = self.problem.m
        of_tile = self.config.row_layout(self.problem)
        found = [
            self.global_row(place.tile[0], of_tile.apply(place.warp[0], *x, place.group))
            for x in product(range(self.rows), range(HALVES))
        ]
        is_whole = self.config.tiles(self.problem)[0] * self.config.tile[0] == m
        return found if is_whole else [minimum(row, place.sizes[0] - 1) for row in found]

    def load_b(self, b: Any, place: Place, n: Any, stage: int) -> list[Value]:
        return self.chunks_of_b(b, place, n, stage, self.chunk)

    def operands_a(self, chunks: Sequence[Value]) -> list[list[Value]]:
        found = []
        for rows in batched(chunks, HALVES):
            words = concatenate([chunk.bitcast("i32") for chunk in rows])
            found.append(
                [words[_words(step)].bitcast(self.problem.dtype) for step in range(_STEPS)]
            )
        return found

    def operands_b(self, chunks: Sequence[Value]) -> list[list[Value]]:
        half = self.chunk // _STEPS
        return [
            [chunk[[*range(step * half, (step + 1) * half)]] for step in range(_STEPS)]
            for chunk in chunks
        ]


class AcrossK(Fragments):
    """Fragments of an A that is contiguous along m.

    A lane's chunks hold neighbouring rows at several k. A register of the instruction has
    neighbours along k of one row, so that chunks are transposed in registers.
    """

    def __init__(
        self, problem: Problem, config: GemvConfig, matrices: Matrices, packed: Any = None
    ) -> None:
        super().__init__(problem, config, matrices, packed)
        self.k_chunk = MMA_K_BYTES // CHUNK_BYTES * self.chunk // THREADS
        self.pairs = self.chunk // HALVES  # of rows of a chunk

    @property
    def chunks_of_a(self) -> int:
        return self.rows // self.pairs * self.k_chunk

    def load_a(self, a: Any, place: Place, n: Any, stage: int) -> list[Value]:
        problem, config, chunk = self.problem, self.config, self.chunk
        rows = config.tile[0]
        levels = [(1, config.k_warps), (1, config.stages), (1, THREADS)]
        chunks = a.view(tiled_matrices(self.a, *levels, (1, self.k_chunk), (chunk, 1)))
        runs = self.rows // self.pairs
        whole = OrderBy(Row(ceildiv(problem.m, rows), config.warps[0], runs, GROUPS))
        found: list[Value] = []
        for run, neighbour in product(range(runs), range(self.k_chunk)):
            row = whole.apply(place.tile[0], place.warp[0], run, place.group)
            row = row if problem.m % rows == 0 else minimum(row, ceildiv(problem.m, chunk) - 1)
            inside = [(0, place.warp[1]), (0, stage), (0, place.thread), (0, neighbour)]
            found.append(chunks[tile_index(place.batch, (row, n), *inside, (slice(None), 0))])
        return found

    def load_b(self, b: Any, place: Place, n: Any, stage: int) -> list[Value]:
        return self.chunks_of_b(b, place, n, stage, self.k_chunk)

    def operands_a(self, chunks: Sequence[Value]) -> list[list[Value]]:
        # From (pair of rows, half of the k of an instruction, row of the pair, neighbour along k)
        # to the element in the lane's chunks.
        sizes = [self.pairs, 2, HALVES, self.k_chunk // 2]
        elements = OrderBy(RegP(sizes, [1, 3, 0, 2]))
        found = []
        for run in batched(chunks, self.k_chunk):
            both = concatenate(run)
            for pair in range(self.pairs):
                index = product(*map(range, sizes[1:]))
                found.append([both[[elements.apply(pair, *x) for x in index]]])
        return found

    def operands_b(self, chunks: Sequence[Value]) -> list[list[Value]]:
        return [[chunk] for chunk in chunks]


def batched(values: Sequence[Value], count: int) -> list[Sequence[Value]]:
    """Return the values in runs of so many."""
    return [values[k : k + count] for k in range(0, len(values), count)]


def _words(step: int) -> list[int]:
    """Return the words of two rows' chunks that are an instruction's operand A, in its order."""
    return [_WORDS.apply(step, *x) for x in product(range(2), range(HALVES))]
