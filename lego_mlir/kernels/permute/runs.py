"""Permutations by tiles of whole runs: for short dimensions, few rows or columns, and any rank.

A *run* is what lies side by side in memory: the innermost mode, as many modes outside of it as it
takes, and a part of one more. A CTA takes a tile that has a long run of the input and a long run of
the output. It loads the input's runs, puts each element where it belongs in shared memory, which is
in the output's order, and stores the output's runs. So 3 channels of an image are no dimension of
their own: the output's run is 3·1024 elements.

In shared memory a word of padding follows every `period` elements, the distance of neighbours of
the input's run, if these would meet in a bank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    barrier,
    block_id,
    if_,
    kernel,
    shared,
    thread_id,
)
from lego_mlir.hardware.limits import BANK_BYTES
from lego_mlir.kernels.permute.problem import Mode, PermuteProblem, count_tiles


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A tile of whole runs.

    Attributes:
        tile: elements of each mode of the problem, in its order.
        threads: of a CTA.
        load_width: elements that a load takes along the input's run.
        store_width: elements that a store takes along the output's run.
    """

    tile: tuple[int, ...]
    threads: int
    load_width: int
    store_width: int

    @property
    def elements(self) -> int:
        """The elements of the tile."""
        return prod(self.tile)


@dataclass(frozen=True, slots=True)
class Side:
    """A tile in one of the two memories.

    Attributes:
        outer: the modes outside of the run, by their numbers in the problem, slowest first.
        run: the modes of the run, slowest first; all but the first are whole.
        sizes: of all modes of the problem.
        tile: elements of each of them in the tile.
    """

    outer: tuple[int, ...]
    run: tuple[int, ...]
    sizes: tuple[int, ...]
    tile: tuple[int, ...]

    @staticmethod
    def of(problem: PermuteProblem, tile: Sequence[int], *, is_source: bool) -> Side:
        """Return the side of the input or of the output."""
        modes = problem.modes
        order = sorted(range(len(modes)), key=lambda k: -_stride(modes[k], is_source))
        sizes = tuple(m.size for m in modes)
        first = len(order) - 1
        while first > 0 and tile[order[first]] == sizes[order[first]]:
            first -= 1
        return Side(tuple(order[:first]), tuple(order[first:]), sizes, tuple(tile))

    @property
    def order(self) -> tuple[int, ...]:
        """All modes, slowest first."""
        return (*self.outer, *self.run)

    @property
    def extents(self) -> tuple[int, ...]:
        """The tile's sizes: of the outer modes, and of the run."""
        return (*(self.tile[k] for k in self.outer), prod(self.tile[k] for k in self.run))

    def memory(self, width: int) -> Layout:
        """Return the memory's layout, indexed by tile, by vector in the tile, and in the vector."""
        sizes = [*(self.sizes[k] for k in self.outer), prod(self.sizes[k] for k in self.run)]
        blocks = [count_tiles(n, t) for n, t in zip(sizes, self.extents, strict=True)]
        ones = [1] * len(self.outer)
        vectors = [*self.extents[:-1], self.extents[-1] // width]
        return OrderBy(Row(*sizes)).TileBy(blocks, vectors, [*ones, width])

    def vectors(self, width: int) -> Layout:
        """Return the layout of the tile's vectors, in the order of memory."""
        return OrderBy(Row(*self.extents[:-1], self.extents[-1] // width))


def _stride(mode: Mode, is_source: bool) -> int:
    return mode.source if is_source else mode.target


def run_permutation(
    name: str,
    problem: PermuteProblem,
    config: RunConfig,
    element_bytes: int,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation by tiles of whole runs.

    Args:
        name: name of the kernel.
        problem: the permutation.
        config: its tile.
        element_bytes: bytes of an element.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    source = Side.of(problem, config.tile, is_source=True)
    target = Side.of(problem, config.tile, is_source=False)
    modes = range(len(problem.modes))
    counts = [count_tiles(problem.modes[k].size, config.tile[k]) for k in modes]
    rasterization = OrderBy(Row(*counts))
    # The tile in the output's order, with a word of padding behind each period.
    inside = OrderBy(Row(*(config.tile[k] for k in target.order)))
    period, padding = _padding(source, target, config, element_bytes)
    padded = OrderBy(Row(config.elements // period, period + padding))
    periods = OrderBy(Row(config.elements // period, period))
    # The vectors of the output divide periods, and the padding.
    width = config.store_width
    drained = padded.TileBy([config.elements // period, (period + padding) // width], [1, width])
    drains = OrderBy(Row(config.elements // period, period // width))
    source_run = OrderBy(Row(*(config.tile[k] for k in source.run)))
    in_vector = OrderBy(Row(source.extents[-1] // config.load_width, config.load_width))

    def at(side: Side, blocks: Sequence[Any]) -> list[Any]:
        """Return the tile's number along the outer modes and the run."""
        return [*(blocks[k] for k in side.outer), blocks[side.run[0]]]

    def permute(a: Any, b: Any) -> None:
        blocks, thread = rasterization.inv(block_id()), thread_id()
        buffer = shared(dtype, padded)
        reads, whole = a.view(source.memory(config.load_width)), (0,) * len(source.outer)

        def load(number: Any) -> Any:
            vector = source.vectors(config.load_width).inv(number)
            return vector, reads[(*at(source, blocks), *vector, *whole, slice(None))]

        def put(loaded: Any) -> None:
            vector, values = loaded
            for k in range(config.load_width):
                along = source_run.inv(in_vector.apply(vector[-1], k))
                index = dict(zip(source.outer, vector[:-1], strict=True))
                index |= dict(zip(source.run, along, strict=True))
                position = inside.apply(*(index[m] for m in target.order))
                buffer[tuple(periods.inv(position))] = values[k]

        writes, flat = b.view(target.memory(width)), (0,) * len(target.outer)
        out = buffer.view(drained)

        def store(number: Any) -> None:
            row, column = drains.inv(number)
            index = target.vectors(width).inv(number)
            place = (*at(target, blocks), *index, *flat, slice(None))
            writes[place] = out[row, column, 0, :]

        vectors = config.elements // config.load_width
        # All loads of a thread are on their way before it waits for the first one.
        loaded = [load(number) for number in _numbers(vectors, config.threads, thread)]
        for found in loaded:
            put(found)
        _rest(vectors, config.threads, thread, lambda number: put(load(number)))
        barrier()
        vectors = config.elements // width
        for number in _numbers(vectors, config.threads, thread):
            store(number)
        _rest(vectors, config.threads, thread, store)

    dtype = a.dtype
    permute.__name__ = name
    return kernel(
        grid=prod(counts),
        block=config.threads,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
    )(permute)


def _numbers(vectors: int, threads: int, thread: Any) -> list[Any]:
    """Return the numbers of a thread's vectors, of as many as all threads have."""
    steps = vectors // threads
    return [OrderBy(Row(steps, threads)).apply(step, thread) for step in range(steps)]


def _rest(vectors: int, threads: int, thread: Any, access: Callable[[Any], None]) -> None:
    """Access the vectors that are left for the first threads, if any are."""
    steps, left = divmod(vectors, threads)
    if left:

        @if_(thread < left)
        def _() -> None:
            access(OrderBy(Row(steps + 1, threads)).apply(steps, thread))


def _padding(source: Side, target: Side, config: RunConfig, element_bytes: int) -> tuple[int, int]:
    """Return after how many elements of shared memory padding follows, and how much.

    Neighbours of the input's run are `distance` elements apart in the output's order. If that is an
    even number of words they meet in a bank, and padding makes it odd.
    """
    innermost = source.run[-1]
    distance = prod(config.tile[k] for k in target.order[target.order.index(innermost) + 1 :])
    if distance == 1 or distance * element_bytes % (2 * BANK_BYTES):
        return config.elements, 0
    return distance, max(1, BANK_BYTES // element_bytes)
