"""Permutations by tiles of whole runs: for short dimensions, few rows or columns, and any rank.

A *run* is what lies side by side in memory: the innermost mode, as many modes outside of it as it
takes, and a part of one more. A CTA takes a tile that has a long run of the input and a long run of
the output. It loads the input's runs, puts each unit where it belongs in shared memory, which is in
the output's order, and stores the output's runs. So 3 channels of an image are no dimension of
their own: the output's run is 3·1024 elements.

A *unit* is what stays together: an element, or several of a mode that is the innermost one of both
memories. Units smaller than a word are accessed by words where runs begin with one.

In shared memory a word of padding follows every `period` units, the distance of neighbours of the
input's run, if these would meet in a bank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.frontend import (
    Kernel,
    TensorType,
    block_id,
    if_,
    kernel,
    shared,
    thread_id,
)
from lego_mlir.hardware.limits import BANK_BYTES, WARP_THREADS
from lego_mlir.kernels.cache_hints import LINE_BYTES, eviction_of
from lego_mlir.kernels.permute.dependence import complete_tile, dependence, dependent_ctas
from lego_mlir.kernels.permute.problem import Mode, PermuteProblem, count_tiles
from lego_mlir.kernels.permute.walks import Walk

SHORT_BYTES = 512
"""Bytes of the longest runs of the input along which CTAs may go first: those of longer ones share
little (measured on an H200, bench/results/permute_order.jsonl)."""

NEAR_BYTES = 16 << 20
"""Bytes that are loaded until something is looked for in the L2 cache: so many find it there."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A tile of whole runs.

    Attributes:
        tile: units of each mode of the problem in units, in its order.
        threads: of a CTA, at most: those that have no place in a run do not work.
        unit: elements that stay together.
        load_word: units of an access to the input; 1 if a unit is a word or more.
        store_word: units of an access to the output; 1, too, if runs begin anywhere in a word.
    """

    tile: tuple[int, ...]
    threads: int
    unit: int
    load_word: int
    store_word: int

    @property
    def units(self) -> int:
        """The units of the tile."""
        return prod(self.tile)


@dataclass(frozen=True, slots=True)
class Side:
    """A tile in one of the two memories.

    Attributes:
        outer: the modes outside of the run, by their numbers in the problem, slowest first.
        run: the modes of the run, slowest first; all but the first are whole.
        sizes: of all modes of the problem.
        tile: units of each of them in the tile.
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

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in memory of a mode's neighbours, of all modes of the problem, in units."""
        return _strides(self.order, self.sizes)

    @property
    def strides_of_rows(self) -> tuple[int, ...]:
        """The distances in memory of neighbours in each mode outside of the run, in units."""
        return tuple(self.strides[k] for k in self.outer)

    def is_aligned(self, word: int) -> bool:
        """Return whether every run, cut ones too, begins and ends with a word of so many units."""
        first = self.run[0]
        inner = self.strides[first]
        ends = (self.tile[first] * inner, self.sizes[first] * inner)
        return not any(n % word for n in (*ends, *(self.strides[k] for k in self.outer)))

    def words(self, word: int) -> tuple[int, ...]:
        """Return the tile's sizes in words: of the outer modes, and of the run."""
        return (*self.extents[:-1], self.extents[-1] // word)

    def memory(self, word: int, unit: int) -> Layout:
        """Return the memory's layout, indexed by tile, by word in the tile, and in the word."""
        sizes = [*(self.sizes[k] for k in self.outer), prod(self.sizes[k] for k in self.run)]
        blocks = [count_tiles(n, t) for n, t in zip(sizes, self.extents, strict=True)]
        ones = [1] * len(self.outer)
        return OrderBy(Row(*sizes, unit)).TileBy(
            [*blocks, 1], [*self.words(word), 1], [*ones, word, unit]
        )


def steps_apart(steps: int, inner: int, rows: int, sector: int) -> int:
    """Return the steps of rows' slowest mode from tile to tile that store whole sectors of them.

    A tile has what precedes the first whole sector in each row, which its neighbour stores.

    Args:
        steps: of a tile.
        inner: units of a step.
        rows: what divides the distances of rows in memory, in units; 0 if there is one row only.
        sector: units of a sector.
    """
    begins = gcd(sector, rows)
    found = steps - count_tiles(sector - begins, inner)
    # Rows begin at multiples of that, and tiles do, too, if they are so far apart.
    return found if found * inner % begins == 0 else steps - count_tiles(sector - 1, inner)


def raster_order(
    problem: PermuteProblem, tile: Sequence[int], counts: Sequence[int], unit_bytes: int
) -> tuple[int, ...]:
    """Return the modes in the order that CTAs go over their tiles, slowest first.

    Tiles beside each other along the input share lines where its runs are short. So if these are
    the shorter ones, and there are fewer tiles along them, CTAs go along the input first. Else it
    is the output's order, in which memory is written, if a tile that continues rows of the input
    comes while what they share is still in the L2 cache; if not, such tiles come as soon as rows of
    the output end.

    Args:
        problem: the permutation of units.
        tile: units of each mode.
        counts: tiles along each mode.
        unit_bytes: bytes of a unit.
    """
    modes = tuple(range(len(tile)))
    source, target = (Side.of(problem, tile, is_source=s) for s in (True, False))
    first, last = source.run[0], target.run[0]
    others = tuple(k for k in modes if k not in (first, last))
    read = source.extents[-1]
    is_short = read * unit_bytes <= SHORT_BYTES and read <= target.extents[-1]
    if first < last and counts[first] < counts[last] and is_short:
        return (*others, last, first)
    between = prod(counts[first + 1 :]) * prod(tile) * unit_bytes
    if between <= NEAR_BYTES or first >= last:
        return modes
    return (*others, first, last)


def _stride(mode: Mode, is_source: bool) -> int:
    return mode.source if is_source else mode.target


@lru_cache(maxsize=1 << 10)
def _strides(order: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distance of neighbours in each mode, of modes in an order, the slowest first."""
    found, distance = [0] * len(order), 1
    for k in reversed(order):
        found[k] = distance
        distance *= sizes[k]
    return tuple(found)


def run_permutation(
    name: str,
    problem: PermuteProblem,
    config: RunConfig,
    unit_bytes: int,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation by tiles of whole runs.

    Args:
        name: name of the kernel.
        problem: the permutation of units.
        config: its tile.
        unit_bytes: bytes of a unit.
        a: type of the input.
        b: type of the output.
        reference: name of the reference that the result is compared with.
    """
    source = Side.of(problem, config.tile, is_source=True)
    target = Side.of(problem, config.tile, is_source=False)
    modes = range(len(problem.modes))
    counts = [count_tiles(problem.modes[k].size, config.tile[k]) for k in modes]
    rasterization = OrderBy(RegP(counts, raster_order(problem, config.tile, counts, unit_bytes)))
    # The tile in the output's order, with a word of padding behind each period.
    inside = OrderBy(Row(*(config.tile[k] for k in target.order)))
    period, padding = find_padding(source, target, config, unit_bytes)
    padded = OrderBy(Row(config.units // period, period + padding, config.unit))
    periods = OrderBy(Row(config.units // period, period))
    source_run = OrderBy(Row(*(config.tile[k] for k in source.run)))
    in_word = OrderBy(Row(source.words(config.load_word)[-1], config.load_word))
    # The words of the output divide periods, and the padding.
    word = config.store_word
    drained = OrderBy(Row(*target.words(word)))
    drains = OrderBy(Row(config.units // period, period // word))
    out_words = padded.TileBy(
        [config.units // period, (period + padding) // word, 1], [1, word, config.unit]
    )

    def at(side: Side, blocks: Sequence[Any], index: Sequence[Any]) -> tuple[Any, ...]:
        """Return the index of a word in memory, by the tile's number and its index in the tile."""
        zeros = (0,) * len(side.outer)
        place = (*(blocks[k] for k in side.outer), blocks[side.run[0]], 0, *index, 0)
        return (*place, *zeros, slice(None), slice(None))

    reading = Walk.of(source.words(config.load_word), config.threads)
    writing = Walk.of(target.words(word), config.threads)
    block = warps_of(max(reading.threads(config.threads), writing.threads(config.threads)))

    def permute(a: Any, b: Any) -> None:
        blocks, thread = rasterization.inv(block_id()), thread_id()
        buffer = shared(dtype, padded)
        reads = a.view(source.memory(config.load_word, config.unit))
        writes = b.view(target.memory(word, config.unit))
        out = buffer.view(out_words)

        def put(loaded: Any) -> None:
            (*outer, along), values = loaded
            for k in range(config.load_word):
                index = dict(zip(source.outer, outer, strict=True))
                place = source_run.inv(in_word.apply(along, k))
                index |= dict(zip(source.run, place, strict=True))
                position = inside.apply(*(index[m] for m in target.order))
                buffer[(*periods.inv(position), slice(None))] = values[k]

        def read(blocks: Sequence[Any]) -> None:
            def load(index: Sequence[Any]) -> Any:
                return index, reads[at(source, blocks, index)]

            # All loads of a thread are on their way before it waits for the first one.
            for loaded in reading(thread, block, config.threads, load):
                put(loaded)
            reading.rest(thread, block, config.threads, lambda index: put(load(index)))

        def write(blocks: Sequence[Any]) -> None:
            def store(index: Sequence[Any]) -> None:
                row, column = drains.inv(drained.apply(*index))
                place = (row, column, 0, 0, slice(None), slice(None))
                writes[at(target, blocks, index)] = out[place]

            writing(thread, block, config.threads, store)
            writing.rest(thread, block, config.threads, store)

        def work(phase: Callable[[Sequence[Any]], None]) -> None:
            _in_tiles(problem, config, blocks, phase)

        _by_first(reading.threads(config.threads), block, thread, lambda: work(read))
        complete_tile(tile_bytes)
        _by_first(writing.threads(config.threads), block, thread, lambda: work(write))

    dtype, tile_bytes = a.dtype, config.units * unit_bytes
    permute.__name__ = name
    return kernel(
        grid=prod(counts),
        block=block,
        reference=reference,
        parameters={"a": a, "b": b},
        strict=True,
        eviction=eviction_of(problem.moved_bytes(unit_bytes), unit_bytes),
        prefetch=LINE_BYTES,
        pdl=dependence(tile_bytes),
        pdl_ctas=dependent_ctas(tile_bytes),
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


def find_padding(source: Side, target: Side, config: RunConfig, unit_bytes: int) -> tuple[int, int]:
    """Return after how many units of shared memory padding follows, and how much.

    Neighbours of the input's run are `distance` units apart in the output's order. If that is an
    even number of words they meet in a bank, and padding makes it odd.
    """
    innermost = source.run[-1]
    distance = prod(config.tile[k] for k in target.order[target.order.index(innermost) + 1 :])
    if distance == 1 or distance * unit_bytes % (2 * BANK_BYTES):
        return config.units, 0
    return distance, max(1, BANK_BYTES // unit_bytes)
