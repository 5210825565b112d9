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
from lego_mlir.hardware.limits import BANK_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.problem import Mode, PermuteProblem, count_tiles
from lego_mlir.kernels.permute.walks import Walk


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A tile of whole runs.

    Attributes:
        tile: elements of each mode of the problem, in its order.
        threads: of a CTA, at most: those that have no place in a run do not work.
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
        return OrderBy(Row(*sizes)).TileBy(blocks, self.vectors_of(width), [*ones, width])

    def vectors_of(self, width: int) -> tuple[int, ...]:
        """Return the sizes of the tile in vectors: of the outer modes, and of the run."""
        return (*self.extents[:-1], self.extents[-1] // width)

    def vectors(self, width: int) -> Layout:
        """Return the layout of the tile's vectors, in the order of memory."""
        return OrderBy(Row(*self.vectors_of(width)))


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

    reading = Walk.of(source.vectors_of(config.load_width), config.threads)
    writing = Walk.of(target.vectors_of(width), config.threads)
    block = warps_of(max(reading.threads(config.threads), writing.threads(config.threads)))

    def permute(a: Any, b: Any) -> None:
        blocks, thread = rasterization.inv(block_id()), thread_id()
        buffer = shared(dtype, padded)
        reads, whole = a.view(source.memory(config.load_width)), (0,) * len(source.outer)
        writes, flat = b.view(target.memory(width)), (0,) * len(target.outer)
        out = buffer.view(drained)

        def put(loaded: Any) -> None:
            vector, values = loaded
            for k in range(config.load_width):
                along = source_run.inv(in_vector.apply(vector[-1], k))
                index = dict(zip(source.outer, vector[:-1], strict=True))
                index |= dict(zip(source.run, along, strict=True))
                position = inside.apply(*(index[m] for m in target.order))
                buffer[tuple(periods.inv(position))] = values[k]

        def read(blocks: Sequence[Any]) -> None:
            def load(vector: Any) -> Any:
                return vector, reads[(*at(source, blocks), *vector, *whole, slice(None))]

            # All loads of a thread are on their way before it waits for the first one.
            for loaded in reading(thread, block, config.threads, load):
                put(loaded)
            reading.rest(thread, block, config.threads, lambda vector: put(load(vector)))

        def write(blocks: Sequence[Any]) -> None:
            def store(vector: Any) -> None:
                row, column = drains.inv(target.vectors(width).apply(*vector))
                place = (*at(target, blocks), *vector, *flat, slice(None))
                writes[place] = out[row, column, 0, :]

            writing(thread, block, config.threads, store)
            writing.rest(thread, block, config.threads, store)

        def work(phase: Callable[[Sequence[Any]], None]) -> None:
            _in_tiles(problem, config, blocks, phase)

        _by_first(reading.threads(config.threads), block, thread, lambda: work(read))
        barrier()
        _by_first(writing.threads(config.threads), block, thread, lambda: work(write))

    dtype = a.dtype
    permute.__name__ = name
    return kernel(
        grid=prod(counts),
        block=block,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
    )(permute)


def warps_of(threads: int) -> int:
    """Return the threads of the warps that have so many."""
    return -(-threads // WARP_THREADS) * WARP_THREADS


def _by_first(count: int, block: int, thread: Any, work: Callable[[], None]) -> None:
    """Do something by the first threads of a CTA."""
    if count == block:
        work()
        return

    @if_(thread < count)
    def _() -> None:
        work()


def _in_tiles(
    problem: PermuteProblem,
    config: RunConfig,
    blocks: Sequence[Any],
    work: Callable[[Sequence[Any]], None],
) -> None:
    """Do something in a tile: where no tile is cut, or none of the tile itself, without masks.

    Args:
        problem: the permutation.
        config: its tile.
        blocks: the tile's number along each mode.
        work: takes these numbers, or those that are known to be of whole tiles.
    """
    whole = [m.size // t for m, t in zip(problem.modes, config.tile, strict=True)]
    cut = [k for k, m in enumerate(problem.modes) if m.size % config.tile[k]]
    if not cut or not all(whole[k] for k in cut):
        work(blocks)
        return
    is_whole = blocks[cut[0]] < whole[cut[0]]
    for k in cut[1:]:
        is_whole = is_whole & (blocks[k] < whole[k])
    inside = [
        OrderBy(Row(2, whole[k])).inv(number)[1] if k in cut else number
        for k, number in enumerate(blocks)
    ]

    @if_(is_whole)
    def _() -> None:
        work(inside)

    @if_(~is_whole)
    def _() -> None:
        work(blocks)


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
