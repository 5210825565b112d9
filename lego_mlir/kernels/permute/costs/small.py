"""The time of a permutation of a small tensor, of a few microseconds: latency counts in it.

Memory is not busy all the time. A multiprocessor starts its CTAs one after the other; each computes
addresses, loads, waits at a barrier and stores, and there are few waves of them. So the time of a
CTA has terms for its instructions and its warps, and most of it is added to the time that memory,
accesses, CTAs and launches take beside one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lego_mlir.hardware.limits import HOPPER_SMS, WARP_THREADS

if TYPE_CHECKING:
    from lego_mlir.kernels.permute.costs.accesses import Accesses

LEAST_BYTES, SMALL_BYTES = 1 << 20, 16e6
"""Bytes that are read and written, between which these prices choose better than those of larger
tensors. Fewer were not measured."""

_LOADED, _STORED, _ROW, _SHARPNESS = 0.0502, 0.377, 4.34, 2.37
"""As of `Prices`, of all kinds of kernels."""

_EXPOSED = 1.76
"""Times of a CTA that no other work hides: the first ones only load, the last ones only store, and
launches follow one another."""

_CTA, _WARP = 1110.0, 19.1
"""Cycles of a CTA, and more for each of its warps, which wait for one another at the barrier."""

_SPECIAL = 0.0599
"""Of these cycles, more for a CTA that has an end of a row, or shares its tile."""

_LAUNCH = 129.0
"""Cycles from a multiprocessor's CTA to its next one."""


@dataclass(frozen=True, slots=True)
class SmallPrices:
    """What the parts of a kind of kernel cost where the tensor is small.

    Attributes:
        wavefront: cycles of a wavefront of shared memory.
        request: cycles of a request for global memory.
        step: cycles of each access that a thread makes after another one.
        instruction: cycles of each instruction that a warp issues after another one.
        unaligned: cycles of a CTA for a side whose rows begin anywhere in a word.
        addressed: cycles of a CTA for each unit whose address a thread computes by itself.
        factor: how many times as long a kernel takes as one by words with the same parts.
    """

    wavefront: float
    request: float
    step: float
    instruction: float
    unaligned: float
    addressed: float
    factor: float


SMALL_TILES = SmallPrices(0.861, 1.49, 14.3, 0.0, 31.5, 2.92, 1.01)
SMALL_RUNS = SmallPrices(0.939, 1.33, 8.68, 0.0, 0.0, 0.0, 1.05)
SMALL_WORDS = SmallPrices(0.778, 1.82, 5.96, 0.927, 36.8, 9.21, 1.0)
SMALL_SQUARES = SmallPrices(1.5, 0.699, 3.49, 1.12, 96.9, 2.86, 0.992)
SMALL_GATHERS = SmallPrices(0.664, 1.03, 8.55, 0.942, 632.0, 0.0, 1.06)
"""Of copies and tiles of two modes, whose instructions are not counted; of runs, the same; by
words; by squares; and by gathers. They and what is above are fitted to 2,405 kernels of 367
permutations that read and write 1 to 16 MB, on an H200 (permute_small_prices.jsonl,
permute_small.jsonl and six other files)."""


def small_cycles(accesses: Accesses) -> Any:
    """Return the cycles of a multiprocessor for a warp's worth of a small tensor's elements.

    Args:
        accesses: of the permutation: numbers, or arrays of them.
    """
    price, warps = accesses.small, accesses.warps
    beyond = _LOADED * (accesses.loaded - 1) + _STORED * (accesses.stored - 1)
    rows = 1 / accesses.row + 0.5 / accesses.written_row
    of_cta = accesses.threads / WARP_THREADS
    instructions = accesses.instructions * warps / of_cta
    cta = _CTA + _WARP * of_cta + price.step * accesses.steps
    cta = cta + price.instruction * instructions + price.unaligned * accesses.unaligned
    cta = cta + price.addressed * accesses.addressed
    cta = cta * (1 + _SPECIAL * accesses.special)
    parts = (
        accesses.least_cycles * (1 + beyond + _ROW * rows),
        price.wavefront * accesses.wavefronts + price.request * accesses.requests,
        cta / (accesses.ctas * warps),
        _LAUNCH / warps,
    )
    longest = sum(part**_SHARPNESS for part in parts) ** (1 / _SHARPNESS)
    exposed = _EXPOSED * cta / (warps * accesses.tiles / HOPPER_SMS)
    return price.factor * (longest + exposed)
