"""The cost model of `wgmma` GEMMs: the time of many configs of one GEMM at once.

CTAs compute tiles of C in waves. An iteration of the K loop, a step, reads 128 bytes of k, or
fewer, of each row of A and of each column of B. It takes about as long as the slowest of

- the tensor cores,
- the ports of shared memory: the tiles are written once, and every consumer warpgroup reads its
  rows of A and all of B,
- the L2 cache, from which all CTAs read lines of 128 bytes; a cluster reads what it shares once, a
  row whose pitch is no multiple of a line touches two, and segments narrower than a line cost
  nearly as much as one,
- the port of a multiprocessor to the L2 cache,
- the part of the L2 cache that has a line which many CTAs read: it serves one request after the
  other, and of rows shorter than a line each CTA has several,
- device memory, from which every byte of A and B is read once, and brought to both halves of the
  cache if CTAs read it that share no multicast,
- the latency of a copy, which begins when a stage has been multiplied, divided by the stages but
  one: a stage is free when the next step is under way.

CTAs that lie side by side on a multiprocessor share the first, the second and the fourth. After its
last step a tile is stored, unless the epilogue overlaps the next main loop. Long launches are
limited by power. Launches follow each other closely: the next one starts on multiprocessors that
have room for its CTAs.

Limits are joined by a p-norm, which is smooth where two of them are close. The constants are
`GpuSpec.wgmma_model`; `python -m bench calibrate` fits them to timings on a card.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lego_mlir.hardware.gemm_models import WgmmaModel
from lego_mlir.kernels.gemm.wgmma.config_table import Numbers
from lego_mlir.kernels.gemm.wgmma.work import Work

_FLOP_BYTES_PER_CLOCK = 4096
"""m n (bytes of k) that the tensor cores of a multiprocessor multiply in a clock: 8192
floating-point operations on 16-bit elements, twice as many on 8-bit ones."""

_LIMIT_NORM = 12.0
"""The exponent that joins the time of the waves with the limits of power and of memory."""

LIMITS = (
    "tensor cores",
    "shared memory",
    "cache",
    "cache port",
    "memory",
    "zeros",
    "latency",
    "shared lines",
)
"""What may limit a step, in the order of `Steps`."""


@dataclass(frozen=True, slots=True)
class Times:
    """The model's times of the configs of a table, in microseconds.

    Attributes:
        total: of the launch.
        steps: of one step by what may limit it, in the order of `LIMITS`.
        power: of the launch if power were the only limit.
        memory: of the launch if device memory were the only limit.
    """

    total: Numbers
    steps: tuple[Numbers, ...]
    power: Numbers
    memory: Numbers

    def limit(self, row: int) -> str:
        """Return what limits a config: a name of `LIMITS`, or `power`."""
        if self.power[row] > 0.9 * self.total[row]:
            return "power"
        if self.memory[row] > 0.9 * self.total[row]:
            return "memory"
        return LIMITS[int(np.argmax([step[row] for step in self.steps]))]


def times_of(work: Work, model: WgmmaModel) -> Times:
    """Return the times of configs.

    Args:
        work: what they do.
        model: the card's constants.
    """
    w, x = work, model
    side = w.side_by_side
    requests = (
        w.lines
        + x.half_line * w.half_lines
        + x.quarter_line * w.quarter_lines
        + x.straddling_line * w.straddling
    )
    tensor = side * w.flop_bytes / _FLOP_BYTES_PER_CLOCK / x.clocks_per_us
    shared = side * (x.shared_write * w.written + x.shared_read * w.read) / x.clocks_per_us
    steps = (
        tensor,
        shared,
        w.busy * requests / x.l2_lines_per_us,
        side * requests / x.sm_lines_per_us,
        w.busy * (w.fresh + x.crossing_cost * w.crossing) / x.memory_bytes_per_us,
        side * (w.zeros * x.zero_us + w.zero_rows * x.zero_row_us),
        w.waited * (x.copy_us + x.copy_wait * np.maximum(tensor, shared)),
        x.reader_us * w.readers,
    )
    norm = x.step_norm
    step = sum(s**norm for s in steps) ** (1 / norm)
    step = step + x.cluster_step_us * np.log2(w.cluster)
    factor = np.where(w.narrow > 0, x.narrow_store, 1.0) * np.where(w.swap > 0, x.swapped_store, 1)
    stores = (side * w.stored * x.store_us_per_byte, w.busy * w.stored / x.l2_store_bytes_per_us)
    store = factor * sum(s**norm for s in stores) ** (1 / norm) + x.tile_us
    store = store + side * w.clipped * x.clipped_us
    main_loop = w.steps * step + side * w.last_zeros * x.zero_us
    overlapped = (main_loop**norm + store**norm) ** (1 / norm)
    is_overlapped = w.overlap > 0
    time = w.waves * np.where(is_overlapped, overlapped, main_loop + store)
    time = time + np.where(is_overlapped, store, 0.0) + x.launch_us
    time = time + x.blocked_us * w.blocked + x.cta_us * (side - 1)
    time = time + np.where(w.persistent > 0, 0.0, x.next_wave_us * (w.waves - 1))
    time = time + np.where(w.cluster > 1, x.cluster_us, 0.0)
    parts = x.split_k_us + x.split_k_us_per_doubling * np.log2(w.split_k)
    parts = parts + x.split_k_us_per_byte * w.reduced
    parts = np.where(w.added > 0, x.l2_sum_us + x.l2_sum_us_per_byte * w.added, parts)
    in_order = x.l2_ordered_sum_us + x.l2_ordered_sum_us_per_byte * w.gathered
    parts = np.where(w.gathered > 0, in_order, parts)
    time = time + np.where(w.split_k > 1, parts, 0.0)
    power = w.flops * x.power_us_per_flop + x.launch_us
    memory = w.bytes / x.memory_bytes_per_us + x.launch_us
    limits = (time, power, memory)
    total = sum(limit**_LIMIT_NORM for limit in limits) ** (1 / _LIMIT_NORM)
    return Times(total, steps, power, memory)
