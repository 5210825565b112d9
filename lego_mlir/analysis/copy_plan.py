"""How the threads of a block copy a tile: by vectors, neighbours in memory by neighbouring threads.

A tile of 128x64 f16 between a row-major matrix and shared memory, by 128 threads: vectors of 8
elements, 16 bytes, lie along the rows of both, so the tile has 128x8 chunks, and the chunk number
`step * 128 + thread` is row `step * 16 + thread / 8`, column `thread % 8`. Eight threads take a
whole line of 128 bytes of the matrix, and from step to step an offset grows by the same distance
in every thread. That is proven here, so that one address serves all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Any, cast

from lego_mlir.algebra import Layout, OrderBy, RegP
from lego_mlir.algebra.slices import Slice
from lego_mlir.algebra.subdivide import Subdivision, subdivide
from lego_mlir.index import Int, Sym, construct, substitute

Index = tuple[Any, ...]

Distances = tuple[tuple[int, int], ...]
"""For each step an earlier one or itself, and how much further on its offset is, in all threads."""

_PERIODS = (1, 2, 4, 8)
"""After so many steps a swizzle may have the same phase again."""


@dataclass(frozen=True, slots=True)
class CopiedTile:
    """One of the two memories of a copy.

    Attributes:
        layout: of the memory.
        whole: its dimensions that the tile has, in the order of the tile's.
        alignment: of the first element's address, in bytes.
    """

    layout: Layout
    whole: tuple[int, ...]
    alignment: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tile."""
        return cast("tuple[int, ...]", tuple(self.layout.dims[k] for k in self.whole))

    def strides(self) -> tuple[float, ...]:
        """The distance in memory of neighbours along each dimension of the tile, at its corner.

        One that depends on a symbolic size counts as far.
        """
        rank = self.layout.rank
        base = self.layout.apply(*[0] * rank)
        found = []
        for k in self.whole:
            index = [int(other == k) for other in range(rank)]
            exists = self.layout.dims[k] != 1 and self.layout.mask(*index) != 0
            distance = construct.sub(self.layout.apply(*index), base) if exists else None
            found.append(abs(distance) if isinstance(distance, int) else inf)
        return tuple(found)


@dataclass(frozen=True)
class ChunkedTile:
    """A side whose tile is taken in chunks.

    Attributes:
        side: of the copy.
        axis: the dimension of the tile that chunks lie along.
        width: elements a chunk.
    """

    side: CopiedTile
    axis: int
    width: int

    @cached_property
    def split(self) -> Subdivision:
        """The side's layout with that dimension split into chunks and elements of them."""
        sizes = (self.side.shape[self.axis] // self.width, self.width)
        return subdivide(self.side.layout, {self.side.whole[self.axis]: sizes})

    def index(self, outer: Sequence[Any], chunk: Sequence[Any], within: Any = 0) -> Index:
        """An index of the split layout.

        Args:
            outer: one entry for each dimension of the side's layout, of no meaning for the tile's.
            chunk: where in the tile, in chunks along the axis.
            within: which element of the chunk, `None` for all.
        """
        parts = list(outer)
        for axis, (dim, entry) in enumerate(zip(self.side.whole, chunk, strict=True)):
            parts[dim] = (entry, within) if axis == self.axis else entry
        return self.split.index(*parts)

    def is_proven(self, size: int) -> bool:
        """Whether each chunk lies in one piece, exists all or not at all, and is aligned."""
        if self.side.alignment % (self.width * size):
            return False
        chunk = [
            Sym(f"chunk {axis}", 0, n // (self.width if axis == self.axis else 1) - 1)
            for axis, n in enumerate(self.side.shape)
        ]
        piece = Slice(self.split.layout, self.index(self._outer, chunk, None))
        if piece.run != self.width:
            return False
        rest = construct.mod(self.offset(chunk), self.width)
        return isinstance(rest, int) and rest == 0

    def offset(self, chunk: Sequence[Any]) -> Int:
        """The offset of a chunk's first element, whatever tile it is."""
        return cast("Int", self.split.layout.apply(*self.index(self._outer, chunk)))

    @property
    def _outer(self) -> list[Any]:
        dims = enumerate(self.side.layout.dims)
        return [Sym(f"index {k}", 0, construct.sub(n, 1)) for k, n in dims]


@dataclass(frozen=True)
class CopyPlan:
    """Who copies what.

    Attributes:
        source: read.
        target: written.
        chunks: from the number of a chunk, `step * threads + thread`, to where it is.
        threads: of the block.
    """

    source: ChunkedTile
    target: ChunkedTile
    chunks: Layout
    threads: int

    @property
    def width(self) -> int:
        """Elements that are copied at once."""
        return self.source.width

    @property
    def steps(self) -> int:
        """Chunks that a thread copies; the last may be one that there is not."""
        return -(-self.count // self.threads)

    @property
    def full_steps(self) -> int:
        """Of these steps, those in which every thread has a chunk."""
        return self.count // self.threads

    @property
    def count(self) -> int:
        """Chunks of the tile."""
        return cast("int", self.chunks.size)

    @cached_property
    def source_distances(self) -> Distances:
        """The distances of the steps in the memory that is read."""
        return self._distances(self.source)

    @cached_property
    def target_distances(self) -> Distances:
        """The distances of the steps in the memory that is written."""
        return self._distances(self.target)

    def _distances(self, side: ChunkedTile) -> Distances:
        """Those for the shortest period that is proven for all threads."""
        for period in _PERIODS:
            if period >= self.steps:
                break
            found = [self._distance(side, start, period) for start in range(period)]
            if all(d is not None for d in found):
                distances = cast("list[int]", found)
                return tuple(
                    (s % period, s // period * distances[s % period]) for s in range(self.steps)
                )
        return tuple((s, 0) for s in range(self.steps))

    def _distance(self, side: ChunkedTile, start: int, period: int) -> int | None:
        """How far apart the steps start, start + period, … are, if all evenly."""
        thread = Sym("thread", 0, self.threads - 1)
        rounds = Sym("round", 0, (self.steps - 1 - start) // period)
        number = construct.add(
            thread, construct.mul(self.threads, construct.add(start, construct.mul(period, rounds)))
        )
        offset = side.offset(self.chunks.inv(number))
        moved = construct.sub(offset, substitute(offset, {rounds: 0}))
        if rounds.hi == 0:
            return 0
        distance = substitute(moved, {rounds: 1})
        linear = isinstance(distance, int) and construct.mul(distance, rounds) == moved
        return cast("int", distance) if linear else None


def plan_copy(
    source: CopiedTile,
    target: CopiedTile,
    size: int,
    threads: int,
    *,
    lead: CopiedTile,
    widths: Sequence[int],
) -> CopyPlan:
    """How to copy a tile from one side to the other.

    Args:
        source: read.
        target: written.
        size: of an element, in bytes.
        threads: of the block.
        lead: the side along which threads follow one another; the global memory.
        widths: how many elements may be copied at once, the best first; not proven for the last.
    """
    return _planned(source, target, size, threads, lead, tuple(widths))


@lru_cache(maxsize=64)
def _planned(
    source: CopiedTile,
    target: CopiedTile,
    size: int,
    threads: int,
    lead: CopiedTile,
    widths: tuple[int, ...],
) -> CopyPlan:
    """The plan; kernels of a process that copy such tiles have it in common."""
    strides = lead.strides()
    near_first = sorted(range(len(strides)), key=lambda axis: strides[axis])
    axis, width = _chunk(source, target, size, near_first, widths)
    sizes = [n // width if k == axis else n for k, n in enumerate(source.shape)]
    chunks = OrderBy(RegP(sizes, near_first[::-1]))
    return CopyPlan(
        ChunkedTile(source, axis, width), ChunkedTile(target, axis, width), chunks, threads
    )


def _chunk(
    source: CopiedTile, target: CopiedTile, size: int, axes: Sequence[int], widths: Sequence[int]
) -> tuple[int, int]:
    """The dimension of the tile that chunks lie along, and their width."""
    *vectors, least = widths
    for width in vectors:
        for axis in axes:
            if source.shape[axis] % width == 0 and all(
                ChunkedTile(side, axis, width).is_proven(size) for side in (source, target)
            ):
                return axis, width
    return axes[0], least
