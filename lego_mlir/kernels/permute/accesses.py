"""The time of a permutation, from what its CTAs access: a cost model of four parts.

- Device memory moves the units that are touched.
- All accesses of a warp go through one unit of a multiprocessor. A request for global memory takes
  it for about three cycles, one for shared memory for one in each wavefront.
- A multiprocessor's schedulers issue instructions.
- A CTA loads, waits, stores: so long it takes, however little it moves. Other CTAs work meanwhile,
  as many as there are threads, registers and shared memory for.

The time is near to the longest of them, and a large part of a CTA's time more. Of 150 random
permutations of a seed that no price was fitted to, what is chosen took 2.8 % longer on an H200 than
the fastest of the five kernels with the best estimates (bench/results/permute_choices.jsonl).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from lego_mlir.hardware.limits import (
    BANK_BYTES,
    MAX_SHARED_BYTES,
    MAX_SM_CTAS,
    MAX_SM_THREADS,
    MAX_THREAD_REGISTERS,
    RESERVED_SHARED_BYTES,
    SM_REGISTERS,
    WARP_THREADS,
)

_BYTES = 16.0
"""Bytes that a copy reads and writes in a cycle, for each multiprocessor of an H200."""

_SCHEDULERS = 4
"""Warp schedulers of a multiprocessor (CUDA C++ Programming Guide, "Compute Capability 9.0")."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What the parts of a kind of kernel cost, fitted to measurements.

    Attributes:
        read: bytes that are read beyond those asked for, beside these.
        again: more, if they are no longer in the L2 cache when a neighbour asks for them.
        written: bytes of sectors that two CTAs put together, beyond those asked for.
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

    read: float
    again: float
    written: float
    row: float
    cta: float
    step: float
    special: float
    request: float
    line: float
    sharpness: float
    idle: float


OF_TILES = {
    1: Prices(0.0728, 1.45, 1.33, 0.301, 1580.0, 18.2, 0.0, 3.22, 0.0, 2.33, 0.0),
    2: Prices(0.0678, 1.38, 1.56, 0.301, 1460.0, 17.7, 0.0, 5.52, 0.0, 2.94, 0.0),
    4: Prices(0.0856, 1.4, 1.7, 0.301, 1260.0, 19.1, 0.0, 4.78, 0.0, 2.23, 0.0),
}
OF_WORDS = {
    1: Prices(0.0197, 0.307, 3.17, 10.3, 2610.0, 80.6, 0.338, 4.63, 0.0, 5.76, 0.445),
    2: Prices(0.0198, 0.322, 1.88, 11.4, 1180.0, 121.0, 0.395, 3.05, 0.0, 4.75, 0.753),
    4: Prices(0.0199, 0.334, 2.3, 13.6, 1060.0, 126.0, 0.395, 3.54, 0.0, 5.44, 0.754),
}
OF_SQUARES = {
    1: Prices(0.0542, 0.179, 1.95, 0.319, 853.0, 148.0, 0.326, 0.576, 0.406, 1.94, 0.119),
    2: Prices(0.0528, 0.166, 1.7, 0.308, 777.0, 145.0, 0.321, 0.672, 0.358, 1.76, 0.127),
    4: Prices(0.046, 0.162, 1.7, 0.312, 894.0, 124.0, 0.345, 0.611, 0.274, 1.78, 0.108),
}
"""Of kernels by tiles of two modes, by runs and of copies; by words; and by squares: each by the
bytes of a unit; those of 4 hold for larger ones. Fitted to kernels of 700 permutations, most
random, on an H200: to which is the fastest one of each, and to how the times of all differ."""

_L2_BYTES = 46e6
"""Bytes that are loaded until none of the earlier ones are in the L2 cache."""

_SMS = 132
"""Multiprocessors of an H200."""

_REGISTERS, _MULTIPLE = 28, 8
"""Registers of a thread besides what it loads, and what the number is a multiple of."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a permutation, for each warp's worth of elements.

    Attributes:
        element_bytes: of an element.
        read: bytes of the half lines that are touched, for each byte that is loaded.
        written: bytes of the sectors that are touched, for each byte that is stored.
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
        lines: that requests for global memory touch; 0 if they are not counted.
        special: the part of the tiles whose CTAs find out what they store.
        instructions: that are issued; 0 if they are not counted.
    """

    element_bytes: float
    read: float
    written: float
    requests: float
    wavefronts: float
    steps: float
    ctas: int
    tiles: int
    warps: float
    row: float
    written_row: float
    between: float
    prices: Prices
    special: float = 0.0
    lines: float = 0.0
    instructions: float = 0.0

    @property
    def access_cycles(self) -> float:
        """Cycles of a multiprocessor's accesses."""
        price = self.prices
        return self.wavefronts + price.request * self.requests + price.line * self.lines

    @property
    def issue_cycles(self) -> float:
        """Cycles of a multiprocessor's schedulers, each of which issues an instruction a cycle."""
        return self.instructions / _SCHEDULERS

    @property
    def least_cycles(self) -> float:
        """Cycles of a copy."""
        return 2 * self.element_bytes * WARP_THREADS / _BYTES

    @property
    def memory_cycles(self) -> float:
        """Cycles of device memory."""
        price = self.prices
        of_read = price.read + price.again * min(1.0, self.between / _L2_BYTES)
        beyond = of_read * (self.read - 1) + price.written * (self.written - 1)
        rows = price.row / self.row + price.row / 2 / self.written_row
        return self.least_cycles * (1 + beyond + rows)

    @property
    def cta_cycles(self) -> float:
        """Cycles from a CTA's begin to its end."""
        price = self.prices
        return (price.cta + price.step * self.steps) * (1 + price.special * self.special)

    @property
    def waiting_cycles(self) -> float:
        """Cycles of a CTA, shared among the CTAs of a multiprocessor."""
        return self.cta_cycles / (self.ctas * self.warps)

    @property
    def idle_cycles(self) -> float:
        """Cycles in which the first CTAs only load and the last ones only store, for all CTAs."""
        return self.prices.idle * self.cta_cycles / (self.tiles / _SMS * self.warps)

    @property
    def cycles(self) -> float:
        """Cycles of a multiprocessor."""
        parts = self.access_cycles, self.memory_cycles, self.issue_cycles, self.waiting_cycles
        power = self.prices.sharpness
        longest: float = sum(part**power for part in parts) ** (1 / power)
        return longest + self.idle_cycles


def prices_of(kind: Mapping[int, Prices], unit_bytes: int) -> Prices:
    """Return the prices of a kind of kernel for units of so many bytes."""
    return kind[min(unit_bytes, max(kind))]


def ctas_at_a_time(threads: int, thread_bytes: float, shared_bytes: float) -> int:
    """Return how many CTAs a multiprocessor works on at a time.

    Args:
        threads: of a CTA.
        thread_bytes: what a thread has loaded before it stores.
        shared_bytes: of a CTA's shared memory.
    """
    registers = ceil((_REGISTERS + thread_bytes / BANK_BYTES) / _MULTIPLE) * _MULTIPLE
    of_warps = -(-threads // WARP_THREADS) * WARP_THREADS
    return max(
        1,
        min(
            MAX_SM_CTAS,
            MAX_SM_THREADS // of_warps,
            SM_REGISTERS // (of_warps * min(registers, MAX_THREAD_REGISTERS)),
            int(MAX_SHARED_BYTES // (shared_bytes + RESERVED_SHARED_BYTES)),
        ),
    )
