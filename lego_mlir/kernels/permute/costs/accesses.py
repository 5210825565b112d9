"""The time of a permutation, from what its CTAs access: a cost model of five parts.

- Device memory moves the halves of lines that are read, the L2 cache the sectors that are touched.
- All accesses of a warp go through one unit of a multiprocessor. A request for global memory takes
  it for about three cycles, one for shared memory for one in each wavefront.
- A multiprocessor's schedulers issue instructions.
- CTAs begin one after the other.
- A CTA loads, waits, stores: so long it takes, however little it moves. Other CTAs work meanwhile,
  as many as there are threads, registers and shared memory for.

The time is near to the longest of them, longer where some multiprocessors have a tile more than
others, and a large part of a CTA's time more. Small tensors have prices of their own, by which most
of a CTA's time is added (`small`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    HOPPER_SMS,
    MAX_SHARED_BYTES,
    MAX_SM_CTAS,
    MAX_SM_THREADS,
    MAX_THREAD_REGISTERS,
    RESERVED_SHARED_BYTES,
    SM_REGISTERS,
    WARP_THREADS,
)
from lego_mlir.kernels.permute.costs.small import (
    LEAST_BYTES,
    SMALL_BYTES,
    SMALL_GATHERS,
    SMALL_RUNS,
    SMALL_SQUARES,
    SMALL_TILES,
    SMALL_WORDS,
    SmallPrices,
    small_cycles,
)

_Price = TypeVar("_Price")

_BYTES = 16.0
"""Bytes that a copy reads and writes in a cycle, for each multiprocessor of an H200."""

_SCHEDULERS = 4
"""Warp schedulers of a multiprocessor (CUDA C++ Programming Guide, "Compute Capability 9.0")."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What the parts of a kind of kernel cost, fitted to measurements.

    Attributes:
        loaded: bytes that a sector which is loaded beyond the bytes asked for counts as, for each
            byte of it: it goes through the L2 cache.
        stored: the same, of sectors that stores touch.
        again: bytes that half a line which is read beyond those asked for counts as, if they are no
            longer in the L2 cache when a neighbour asks for them.
        row: bytes for each row of the input that a tile has a part of; half of them for each one of
            the output.
        cta: cycles of a CTA.
        step: cycles of each access that a thread makes after another one.
        special: of these cycles, more for a CTA that has an end of a row, or shares its tile.
        request: cycles of a request for global memory, where a wavefront of shared memory takes
            one.
        line: more, for each line that it touches.
        sharpness: the exponent of the norm that the time is of its parts: the larger, the nearer it
            is to the longest.
        idle: of these cycles, those in which memory is idle where the kernel begins and ends.
    """

    loaded: float
    stored: float
    again: float
    row: float
    cta: float
    step: float
    special: float
    request: float
    line: float
    sharpness: float
    idle: float


@dataclass(frozen=True, slots=True)
class KindPrices:
    """What the parts of a kind of kernel cost.

    Attributes:
        by_bytes: prices by the bytes of a unit.
        small: prices where the tensor is small, whatever the bytes of a unit.
    """

    by_bytes: Mapping[int, Prices]
    small: SmallPrices


OF_TILES = KindPrices(
    {
        1: Prices(0.289, 0.581, 0.301, 0.3, 1190.0, 17.6, 0.1, 4.41, 0.0, 2.07, 0.109),
        2: Prices(0.287, 0.607, 0.3, 0.3, 1180.0, 17.6, 0.1, 4.43, 0.0, 2.1, 0.109),
        4: Prices(0.291, 0.586, 0.3, 0.3, 1140.0, 17.7, 0.1, 4.89, 0.0, 1.9, 0.11),
    },
    SMALL_TILES,
)
OF_RUNS = KindPrices(OF_TILES.by_bytes, SMALL_RUNS)
OF_COPIES = KindPrices(
    {
        1: Prices(0.289, 0.581, 0.301, 0.3, 1190.0, 17.6, 0.1, 4.41, 0.0, 4.0, 0.109),
        2: Prices(0.287, 0.607, 0.3, 0.3, 1180.0, 17.6, 0.1, 4.43, 0.0, 4.0, 0.109),
        4: Prices(0.291, 0.586, 0.3, 0.3, 1140.0, 17.7, 0.1, 4.89, 0.0, 4.0, 0.11),
    },
    SMALL_TILES,
)
OF_WORDS = KindPrices(
    {
        1: Prices(0.165, 0.681, 0.247, 5.89, 1030.0, 82.2, 0.357, 3.27, 0.0, 4.07, 0.626),
        2: Prices(0.161, 0.656, 0.244, 5.89, 890.0, 92.7, 0.363, 3.71, 0.0, 3.93, 0.681),
        4: Prices(0.166, 0.66, 0.241, 5.89, 939.0, 96.9, 0.367, 3.51, 0.0, 4.06, 0.675),
    },
    SMALL_WORDS,
)
OF_SQUARES = KindPrices(
    {
        1: Prices(0.209, 1.08, 0.281, 0.307, 887.0, 132.0, 0.4, 0.578, 0.342, 2.45, 0.156),
        2: Prices(0.196, 0.953, 0.284, 0.306, 895.0, 118.0, 0.394, 0.591, 0.385, 2.36, 0.154),
        4: Prices(0.205, 0.888, 0.283, 0.307, 875.0, 112.0, 0.384, 0.588, 0.362, 2.51, 0.142),
    },
    SMALL_SQUARES,
)
OF_GATHERS = KindPrices(
    {
        1: Prices(0.484, 0.907, 0.547, 3.11, 1400.0, 92.8, 0.581, 0.542, 0.474, 2.98, 1.0),
        2: Prices(0.484, 0.907, 0.547, 3.11, 1400.0, 92.8, 0.581, 0.542, 0.474, 2.98, 1.0),
    },
    SMALL_GATHERS,
)
"""Of kernels by tiles of two modes and by runs; of copies, whose threads wait for their own loads
only; by words; by squares; and by gathers: each by the bytes of a unit; those of 4 hold for larger
ones. Those of gathers are fitted to 546 kernels of 104 permutations (permute_gathers.jsonl), others
to kernels of 900 permutations, most random, on an H200: to which is the fastest one of each, and to
how the times of all differ; copies' sharpness to 150 more (permute_whole_words.jsonl)."""

_MOVED_BYTES, _SHARED = (250e6, 350e6), (0.0, 2.0)
"""By how many times its price a sector costs more that two CTAs store parts of, for the bytes that
are read and written, in proportion between them. Of 218 permutations of 100 MB and more on an H200
the choice among measured configs takes 2.6 % longer than the best one with it, in the mean, and
3.1 % without (bench/results/permute_sectors, gathers, order, smaller_tiles and drawn)."""

_L2_BYTES = 46e6
"""Bytes that are loaded until none of the earlier ones are in the L2 cache."""

_LAUNCH = 280.0
"""Cycles from a multiprocessor's CTA to its next one, in dependent launches: the fewest that were
seen on an H200. In others they are half as many."""

_UNEVEN = 1.0
"""By so much of the time a kernel takes longer where the busiest multiprocessor has twice as many
tiles as the average one, and by its square where it has less: a few tiles more are made up for."""

_REGISTERS, _MULTIPLE = 28, 8
"""Registers of a thread besides what it loads, and what the number is a multiple of."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a permutation, for each warp's worth of elements.

    Numbers, or arrays of them: then what is computed of them are arrays.

    Attributes:
        element_bytes: of an element.
        read: bytes of the half lines that are touched, for each byte that is loaded.
        loaded: bytes of the sectors that are touched, for each byte that is loaded.
        stored: bytes of the sectors that stores of warps touch, for each byte that is stored.
        requests: requests for global memory.
        wavefronts: of shared memory.
        steps: accesses that a thread makes, one after the other.
        ctas: that a multiprocessor works on at a time.
        tiles: in all.
        warps: warps' worths of elements in a tile, on average.
        row: bytes of a tile that are side by side in the input.
        written_row: bytes of a tile that are side by side in the output.
        between: bytes that are loaded before the input's next line, where a row goes on.
        prices: what the parts cost.
        small: what they cost where the tensor is small.
        lines: that requests for global memory touch; 0 if they are not counted.
        threads: of a CTA.
        moved_bytes: that are read and written.
        special: the part of the tiles whose CTAs find out what they store.
        part: of the time that is estimated otherwise.
        instructions: that are issued; 0 if they are not counted.
        shared: bytes of the sectors that two CTAs store parts of, for each byte that is stored.
        unaligned: sides, of input and output, whose rows begin anywhere in a word.
        addressed: units whose addresses a thread computes one by one, as rows begin anywhere.
    """

    element_bytes: float
    read: Any
    loaded: Any
    stored: Any
    requests: Any
    wavefronts: Any
    steps: Any
    ctas: Any
    tiles: Any
    warps: Any
    row: Any
    written_row: Any
    between: Any
    prices: Prices
    small: SmallPrices
    threads: Any
    moved_bytes: float
    special: Any = 0.0
    part: Any = 1.0
    lines: Any = 0.0
    instructions: Any = 0.0
    shared: Any = 0.0
    unaligned: int = 0
    addressed: int = 0

    @property
    def access_cycles(self) -> Any:
        """Cycles of a multiprocessor's accesses."""
        price = self.prices
        return self.wavefronts + price.request * self.requests + price.line * self.lines

    @property
    def issue_cycles(self) -> Any:
        """Cycles of a multiprocessor's schedulers, each of which issues an instruction a cycle."""
        return self.instructions / _SCHEDULERS

    @property
    def least_cycles(self) -> Any:
        """Cycles of a copy."""
        return 2 * self.element_bytes * WARP_THREADS / _BYTES

    @property
    def memory_cycles(self) -> Any:
        """Cycles of device memory."""
        import numpy as np

        price = self.prices
        moved = 2 * self.element_bytes * WARP_THREADS * self.warps * self.tiles
        shared = self.shared * np.interp(moved, _MOVED_BYTES, _SHARED)
        beyond = price.loaded * (self.loaded - 1) + price.stored * (self.stored + shared - 1)
        beyond += price.again * np.minimum(1.0, self.between / _L2_BYTES) * (self.read - 1)
        rows = price.row / self.row + price.row / 2 / self.written_row
        return self.least_cycles * (1 + beyond + rows)

    @property
    def cta_cycles(self) -> Any:
        """Cycles from a CTA's begin to its end."""
        price = self.prices
        return (price.cta + price.step * self.steps) * (1 + price.special * self.special)

    @property
    def waiting_cycles(self) -> Any:
        """Cycles of a CTA, shared among the CTAs of a multiprocessor."""
        return self.cta_cycles / (self.ctas * self.warps)

    @property
    def busiest(self) -> Any:
        """How many times as many tiles as the average the busiest multiprocessor has.

        1 if each has one at most: then it matters how long a CTA takes, not how many there are.
        """
        import numpy as np

        each = np.maximum(1.0, self.tiles / HOPPER_SMS)
        return np.ceil(each) / each

    @property
    def idle_cycles(self) -> Any:
        """Cycles in which the first CTAs only load and the last ones only store, for all CTAs."""
        return self.prices.idle * self.cta_cycles / (self.tiles / HOPPER_SMS * self.warps)

    @property
    def cycles(self) -> Any:
        """Cycles of a multiprocessor."""
        if LEAST_BYTES < self.moved_bytes < SMALL_BYTES:
            return small_cycles(self)
        parts = (
            self.access_cycles,
            self.memory_cycles,
            self.issue_cycles,
            self.waiting_cycles,
            _LAUNCH / self.warps,
        )
        power = self.prices.sharpness
        longest = sum(part**power for part in parts) ** (1 / power)
        uneven = 1 + _UNEVEN * (self.busiest - 1) ** 2
        return (longest * uneven + self.idle_cycles) * self.part


def prices_of(kind: Mapping[int, _Price], unit_bytes: int) -> _Price:
    """Return the prices of a kind of kernel for units of so many bytes."""
    return kind[min(unit_bytes, max(kind))]


def ctas_at_a_time(threads: Any, thread_bytes: Any, shared_bytes: Any) -> Any:
    """Return how many CTAs a multiprocessor works on at a time; of arrays, an array.

    Args:
        threads: of a CTA.
        thread_bytes: what a thread has loaded before it stores.
        shared_bytes: of a CTA's shared memory.
    """
    return resident_ctas(threads, _REGISTERS + thread_bytes / BANK_BYTES, shared_bytes)


def resident_ctas(threads: Any, registers: Any, shared_bytes: Any, least: int = 1) -> Any:
    """Return how many CTAs a multiprocessor has room for, one at least; of arrays, an array.

    Args:
        threads: of a CTA.
        registers: that a thread needs.
        shared_bytes: of a CTA's shared memory.
        least: CTAs that there are registers for, whatever a thread needs.
    """
    import numpy as np

    registers = np.minimum(registers, SM_REGISTERS // (threads * least) // _MULTIPLE * _MULTIPLE)
    of_thread = np.minimum(-(-registers // _MULTIPLE) * _MULTIPLE, MAX_THREAD_REGISTERS)
    of_warps = -(-threads // WARP_THREADS) * WARP_THREADS
    by_threads = np.minimum(MAX_SM_THREADS // of_warps, SM_REGISTERS // (of_warps * of_thread))
    by_shared = MAX_SHARED_BYTES // (shared_bytes + RESERVED_SHARED_BYTES)
    return np.maximum(1, np.minimum(MAX_SM_CTAS, np.minimum(by_threads, by_shared))).astype(int)
