"""The cost model of `mma.sync` GEMMs: the time of many configs of one GEMM at once.

A multiprocessor holds as many CTAs as its shared memory and registers allow. Each of their K-loop
iterations multiplies one tile of A and one of B and takes as long as the busiest of

- the tensor cores: 2 m n k operations,
- shared memory: the tiles are written once, and every warp reads its rows and columns of them,
- the L2 cache: the tiles are read once,

or as long as the latency of a copy, if too few stages are in flight. Each round of iterations, one
for every CTA, ends with barriers and first loads, in which nothing is multiplied. Rows that are not
multiples of 16 bytes are copied in narrower pieces, which a thread issues one after the other; it
waits for pieces of less than 4 bytes. Nothing is copied from beyond the end of k. Rows of C that
begin off 16 bytes are stored in narrow pieces too. Before its first iteration a CTA waits for
memory; after its last it stores its tile. The CTAs of a GEMM run in waves; the last wave may take
as long as the others and be nearly empty. No GEMM is faster than device memory moves its matrices.
(The terms are those of the roofline model; the waves are NVIDIA's "tile quantization" and "wave
quantization", Matrix Multiplication Background User's Guide.)

The constants are `GpuSpec.mma_model`; `python -m bench calibrate` fits them to timings on a card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import ceil, gcd

import numpy as np
import numpy.typing as npt

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import MmaModel
from lego_mlir.hardware.limits import (
    LEAST_ASYNC_BYTES,
    MAX_THREAD_REGISTERS,
    RESERVED_SHARED_BYTES,
    SM_REGISTERS,
)
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.kernels.gemm.matrices import ALIGNMENT, copy_widths
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem

Numbers = npt.NDArray[np.float64]

LIMITS = ("tensor cores", "shared memory", "cache", "latency")
"""What may limit an iteration, in the order of `Work.limits`."""

_AHEAD = 3
"""Iterations that copies are ahead, at most, as far as the model tells them apart."""

_OTHER_REGISTERS = 32
"""Registers of a thread besides accumulators and operands: addresses, counters."""


@dataclass(frozen=True, slots=True)
class Work:
    """What configs do for a GEMM, in columns: a row is a config. Times are clocks of one CTA.

    Attributes:
        busiest: CTAs of the busiest multiprocessor, in all waves.
        held: CTAs that a multiprocessor holds at a time.
        iterations: of the K loop.
        stages: pipeline stages.
        tensor: of the tensor cores in an iteration.
        shared: of the port of shared memory.
        cache: of the L2 cache.
        latency: the latency of a copy, divided by the stages in flight.
        element_copies: copies of less than 4 bytes of a thread in an iteration, on average.
        short_copies: its copies of 4 and 8 bytes.
        stored: bytes of C.
        is_narrow: whether they are stored by rows that begin off 16 bytes.
        memory_us: microseconds in which device memory moves the matrices.
        clocks_per_us: of a multiprocessor.
    """

    busiest: Numbers
    held: Numbers
    iterations: Numbers
    stages: Numbers
    tensor: Numbers
    shared: Numbers
    cache: Numbers
    latency: Numbers
    element_copies: Numbers
    short_copies: Numbers
    stored: Numbers
    is_narrow: Numbers
    memory_us: Numbers
    clocks_per_us: Numbers

    @staticmethod
    def joined(works: Sequence[Work]) -> Work:
        """Return the rows of all, one behind the other."""
        names = [f.name for f in fields(Work)]
        return Work(*(np.concatenate([getattr(w, n) for w in works]) for n in names))

    def limits(self, ctas: Numbers) -> tuple[Numbers, ...]:
        """Return the clocks of an iteration by what may limit it, in the order of `LIMITS`.

        Args:
            ctas: those that a multiprocessor holds.
        """
        return self.tensor, self.shared, self.cache, self.latency / np.maximum(ctas, 1.0)


def work_of(
    problem: Problem, configs: Sequence[MmaConfig], gpu: GpuSpec, alignment: int = ALIGNMENT
) -> Work:
    """Return what configs do for a GEMM.

    Args:
        problem: the GEMM.
        configs: the configs.
        gpu: the card.
        alignment: bytes that the addresses of the matrices are a multiple of.
    """
    size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
    widths = copy_widths(problem, alignment)
    is_narrow = gcd(ALIGNMENT, alignment, problem.n * out) < ALIGNMENT
    read = (problem.m + problem.n) * problem.k * size
    moved = problem.batch * (read + problem.m * problem.n * out)
    rows = []
    for config in configs:
        m, n, k = config.tile
        down, across = config.tiles(problem)
        busiest = ceil(down * across * problem.batch / gpu.multiprocessors)
        stage = config.stage_bytes(problem)
        iterations = config.k_iterations(problem)
        existing = problem.k / iterations  # the columns of A that an iteration copies
        read_by_warps = (config.warps[1] * m + config.warps[0] * n) * k * size
        copies = [
            (width, extent * existing * size / width / config.threads)
            for width, extent in zip(widths, (m, n), strict=True)
        ]
        rows.append(
            (
                busiest,
                min(ctas_per_sm(problem, config, gpu), busiest),
                iterations,
                config.stages,
                m * n * k * size / gpu.mma_flops_per_clock,
                (stage + read_by_warps) / gpu.shared_bytes_per_clock,
                stage / gpu.l2_bytes_per_clock,
                gpu.l2_latency_clocks / (config.stages - 1),
                sum(count for width, count in copies if width < LEAST_ASYNC_BYTES),
                sum(count for width, count in copies if LEAST_ASYNC_BYTES <= width < ALIGNMENT),
                m * n * out,
                is_narrow,
                moved / gpu.memory_gb_per_s / 1e3,
                gpu.clock_ghz * 1e3,
            )
        )
    columns = np.array(rows, float).reshape(-1, len(fields(Work))).T
    return Work(*columns)


def times_of(work: Work, model: MmaModel) -> Numbers:
    """Return the microseconds of configs.

    Args:
        work: what they do.
        model: the card's constants.
    """
    w, x = work, model
    full = np.floor(w.busiest / w.held)
    rest = w.busiest - full * w.held
    rate = np.where(w.is_narrow > 0, x.unaligned_store_bytes_per_clock, x.store_bytes_per_clock)

    def wave(ctas: Numbers) -> Numbers:
        """Return the clocks of one wave of so many CTAs on a multiprocessor."""
        iteration = _greatest(w.limits(ctas))
        ahead = np.minimum(_AHEAD, (w.stages - 1) * ctas)
        between = x.iteration_clocks + x.late_copy_clocks * (_AHEAD - ahead)
        between = between + x.element_copy_clocks * w.element_copies
        between = between + x.short_copy_clocks * w.short_copies
        issued = x.element_issue_clocks * w.element_copies + x.short_issue_clocks * w.short_copies
        store = ctas * w.stored / rate
        return w.iterations * (ctas * (iteration + issued) + between) + store + x.cta_clocks

    clocks = full * wave(w.held) + np.where(rest > 0, wave(rest), 0.0)
    times: Numbers = np.maximum(clocks / w.clocks_per_us, w.memory_us)
    return times


def _greatest(columns: Sequence[Numbers]) -> Numbers:
    """Return the greatest number of each row."""
    greatest: Numbers = np.maximum.reduce(list(columns))
    return greatest


def ctas_per_sm(problem: Problem, config: MmaConfig, gpu: GpuSpec) -> int:
    """Return how many CTAs a multiprocessor holds."""
    by_shared = gpu.sm_shared_bytes // (config.shared_bytes(problem) + RESERVED_SHARED_BYTES)
    registers = min(MAX_THREAD_REGISTERS, registers_of(config))
    by_registers = SM_REGISTERS // (config.threads * registers)
    return max(1, min(by_shared, by_registers, gpu.sm_threads // config.threads))


def registers_of(config: MmaConfig) -> int:
    """Return the registers of a thread: accumulators, two operand fragments, and others."""
    m, n, _ = config.tile
    down, across = m // config.warps[0], n // config.warps[1]
    return down * across // 32 + 2 * (down // 16 * 4 + across // 8 * 2) + _OTHER_REGISTERS
