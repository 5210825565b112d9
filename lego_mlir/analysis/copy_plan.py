"""Plans by which the threads of a CTA copy a tile in vectors, coalesced.

A tile of 128x64 f16 between a row-major matrix and shared memory, by 128 threads: vectors of 8
elements, 16 bytes, lie along the rows of both, so the tile has 128x8 chunks, and the chunk number
`step * 128 + thread` is row `step * 16 + thread / 8`, column `thread % 8`. Eight threads take a
whole line of 128 bytes of the matrix. From step to step the offset grows by the same distance in
every thread. This module proves that, so that one address serves all steps.
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
"""For each step an earlier step or itself, and the distance from its offset, in all threads."""

_PERIODS = (1, 2, 4, 8)
"""Numbers of steps after which a swizzle may have the same phase again."""


@dataclass(frozen=True, slots=True)
class CopiedTile:
    """The tile of a copy, in one of its two memories.

    Attributes:
        layout: layout of the memory.
        whole: the layout's dimensions that the tile spans, in the order of the tile's.
        alignment: alignment of the first element's address, in bytes.
    """

    layout: Layout
    whole: tuple[int, ...]
    alignment: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return cast("tuple[int, ...]", tuple(self.layout.dims[k] for k in self.whole))

    def strides(self) -> tuple[float, ...]:
        """Return the distance of neighbours along each dimension of the tile, at its first element.

        A distance that depends on a symbolic size counts as infinite.
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
    """A tile that is copied in chunks.

    Attributes:
        side: the tile.
        axis: dimension of the tile along which chunks lie.
        width: elements of a chunk.
    """

    side: CopiedTile
    axis: int
    width: int

    @cached_property
    def split(self) -> Subdivision:
        """The layout with dimension `axis` split into chunks and the elements of a chunk."""
        sizes = (self.side.shape[self.axis] // self.width, self.width)
        return subdivide(self.side.layout, {self.side.whole[self.axis]: sizes})

    def index(self, outer: Sequence[Any], chunk: Sequence[Any], within: Any = 0) -> Index:
        """Return an index of the split layout.

        Args:
            outer: one entry for each dimension of the layout; those of the tile are ignored.
            chunk: position in the tile, in chunks along the axis.
            within: element of the chunk, `None` for all.
        """
        parts = list(outer)
        for axis, (dim, entry) in enumerate(zip(self.side.whole, chunk, strict=True)):
            parts[dim] = (entry, within) if axis == self.axis else entry
        return self.split.index(*parts)

    def is_proven(self, size: int) -> bool:
        """Return whether each chunk is contiguous, masked as a whole, and aligned.

        Args:
            size: bytes of an element.
        """
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
        """Return the offset of a chunk's first element, for an arbitrary tile."""
        return cast("Int", self.split.layout.apply(*self.index(self._outer, chunk)))

    @property
    def _outer(self) -> list[Any]:
        dims = enumerate(self.side.layout.dims)
        return [Sym(f"index {k}", 0, construct.sub(n, 1)) for k, n in dims]


@dataclass(frozen=True)
class CopyPlan:
    """Which thread copies which chunk.

    Attributes:
        source: tile that is read.
        target: tile that is written.
        chunks: maps a chunk's position to its number, `step * threads + thread`.
        threads: threads of the CTA.
    """

    source: ChunkedTile
    target: ChunkedTile
    chunks: Layout
    threads: int

    @property
    def width(self) -> int:
        """Elements that one instruction copies."""
        return self.source.width

    @property
    def steps(self) -> int:
        """Chunks that a thread copies; the last may lie beyond the tile."""
        return -(-self.count // self.threads)

    @property
    def full_steps(self) -> int:
        """Steps in which every thread has a chunk."""
        return self.count // self.threads

    @property
    def count(self) -> int:
        """Number of chunks of the tile."""
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
        """Return the distances for the shortest period that is proven for all threads."""
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
        """Return the distance of the steps start, start + period, …, or `None` if it varies."""
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
    """Plan the copy of a tile from one memory to the other.

    Args:
        source: tile that is read.
        target: tile that is written.
        size: bytes of an element.
        threads: threads of the CTA.
        lead: tile along which threads are consecutive; the one in global memory.
        widths: elements per instruction to try, best first; the last is taken without proof.
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
    """Plan a copy; kernels of a process that copy equal tiles share the plan."""
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
    """Return the dimension of the tile along which chunks lie, and their width."""
    *vectors, least = widths
    for width in vectors:
        for axis in axes:
            if source.shape[axis] % width == 0 and all(
                ChunkedTile(side, axis, width).is_proven(size) for side in (source, target)
            ):
                return axis, width
    return axes[0], least
