"""The cost model of GEMMs with few columns of C: the time of many configs of one GEMM at once.

Such a GEMM reads a matrix once, so at best it takes as long as device memory. It takes as long as
the slowest of

- device memory, from which every byte is read once; a CTA reads its rows of A in runs, those of one
  iteration, and each run loses some bytes' time,
- the port of a multiprocessor to the L2 cache, from which every CTA also reads the columns of B,
- the instructions that load, transpose and multiply, more of them where rows of A begin at
  different positions in a chunk, and where elements of B are loaded one by one,
- the latency of an iteration: a warp loads the chunks of one while it multiplies those of another.

By Little's law device memory is busy only if enough bytes are in flight, which is the last of
these. The sums of the accumulators of the warps along k, and of the slices of k, take their time
for each element of C; these and the launch come on top. Times that overlap are joined by a p-norm.

The constants are `GpuSpec.gemv_model`; `python -m bench calibrate` fits them to timings on a card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import ceil, gcd, prod

import numpy as np
import numpy.typing as npt

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.gemm_models import GemvModel
from lego_mlir.hardware.limits import MMA_K_BYTES, RESERVED_SHARED_BYTES, SM_REGISTERS
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.kernels.gemm.gemv.chunks import (
    CHUNK_BYTES,
    HALVES,
    THREADS,
    chunk_elements,
    shift_classes,
    warp_unit,
)
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.gemv.packing import Packing
from lego_mlir.kernels.gemm.problem import Problem

Numbers = npt.NDArray[np.float64]

LIMITS = ("memory", "cache", "instructions", "latency")
"""What may limit a launch, in the order of `Times.limits`."""

_BUFFERS = 1.6
"""Registers for each register of chunks: chunks are loaded while those before them are multiplied
(ptxas 13, on 8 configs)."""

_OTHER_REGISTERS = 12
"""Registers of a thread besides accumulators and operands: addresses, counters."""


@dataclass(frozen=True, slots=True)
class Work:
    """What configs do for a GEMM, in columns: a row is a config.

    Attributes:
        moved: bytes of the matrices.
        run: bytes of a row or column of A that a CTA reads in an iteration.
        by_row: whether A is contiguous along k.
        cached: bytes that the busiest multiprocessors read from the L2 cache.
        issued: bytes of A that each of them loads and multiplies, those beyond its edges too.
        issued_b: bytes that their warps' accesses of B would load if each were a chunk.
        column_tiles: columns of an `mma` that a warp multiplies each chunk by, over eight.
        shifted: whether rows or columns of A begin at different positions in a chunk.
        rounds: iterations of a multiprocessor's slot for CTAs, one after the other.
        loads: accesses by which a lane loads its chunks in an iteration.
        packed: bytes that the kernel moves which packs B; 0 without it.
        tail: accesses after the K loop, one by one, where chunks are shifted.
        waves: CTAs of that slot.
        along: warps along k, whose accumulators are added up.
        summed: accumulators that a thread adds up, those of all warps along k.
        split: whether the CTAs of several slices of k add theirs up through the L2 cache.
        added: accumulators that a thread adds up through it.
        in_flight: bytes of A that the warps of a multiprocessor load at the same time.
        ctas: CTAs of the launch.
        held: CTAs that a multiprocessor holds.
        iterations: of a CTA.
    """

    moved: Numbers
    run: Numbers
    by_row: Numbers
    cached: Numbers
    issued: Numbers
    issued_b: Numbers
    column_tiles: Numbers
    shifted: Numbers
    rounds: Numbers
    loads: Numbers
    packed: Numbers
    tail: Numbers
    waves: Numbers
    along: Numbers
    summed: Numbers
    split: Numbers
    added: Numbers
    in_flight: Numbers
    ctas: Numbers
    held: Numbers
    iterations: Numbers

    @staticmethod
    def joined(works: Sequence[Work]) -> Work:
        """Return the rows of all, one behind the other."""
        names = [f.name for f in fields(Work)]
        return Work(*(np.concatenate([getattr(w, n) for w in works]) for n in names))


@dataclass(frozen=True, slots=True)
class Times:
    """The model's times of configs, in microseconds.

    Attributes:
        total: of the launch.
        limits: of the launch by what may limit it, in the order of `LIMITS`.
    """

    total: Numbers
    limits: tuple[Numbers, ...]


def work_of(problem: Problem, configs: Sequence[GemvConfig], gpu: GpuSpec) -> Work:
    """Return what configs do for a GEMM.

    Args:
        problem: the GEMM that they multiply: the transpose if they swap A and B.
        configs: the configs.
        gpu: the card.
    """
    size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
    a = problem.m * problem.k * size * problem.batch
    b = problem.n * problem.k * size
    moved = a + (b + problem.m * problem.n * out) * problem.batch
    by_row, is_shifted = problem.a == "row", shift_classes(problem) > 1
    rows = []
    for config in configs:
        ctas = prod(config.tiles(problem)) * problem.batch * config.split_k
        tile_k = config.tile[2] // config.split_k
        held = ctas_per_sm(problem, config, gpu)
        iterations = config.k_iterations(problem)
        busy = ctas / ceil(ctas / gpu.multiprocessors)  # shares of the busiest one
        waves = max(1.0, ctas / (gpu.multiprocessors * held))
        overlap = config.tile[0] / config.output_rows(problem)
        run = tile_k if by_row else config.tile[0]
        resident = min(held, -(-ctas // gpu.multiprocessors))
        loads_of_a, loads_of_b = chunks(problem, config), accesses_of_b(problem, config)
        outputs = ceil(config.output_rows(problem) * config.tile[1] / config.threads)
        rows.append(
            (
                moved,
                min(run, problem.k if by_row else problem.m) * size,
                by_row,
                (a * overlap + b * ctas / config.split_k) / busy,
                ctas * iterations * config.tile[0] * tile_k * size / busy,
                ctas * iterations * config.threads * loads_of_b * CHUNK_BYTES / busy,
                config.column_tiles(),
                is_shifted,
                waves * iterations,
                loads_of_a + loads_of_b,
                Packing(problem).bytes if config.packs_b else 0,
                _tail(problem, config) if is_shifted else 0,
                ceil(waves),
                config.warps[1],
                outputs * config.warps[1],
                config.split_k > 1,
                outputs * (config.split_k > 1),
                resident * config.threads * loads_of_a * CHUNK_BYTES,
                ctas,
                held,
                iterations,
            )
        )
    columns = np.array(rows, float).reshape(-1, len(fields(Work))).T
    return Work(*columns)


def times_of(work: Work, model: GemvModel) -> Times:
    """Return the times of configs.

    Args:
        work: what they do.
        model: the card's constants.
    """
    w, x = work, model
    by_row = w.by_row > 0
    lost = np.where(by_row, x.row_run_bytes, x.column_run_bytes) / w.run
    shift = np.where(by_row, x.row_shift_cost, x.column_shift_cost)
    tile_cost = np.where(by_row, x.column_tile_cost, x.transposed_tile_cost)
    issued = w.issued * (1 + tile_cost * (w.column_tiles - 1))
    issued = issued + x.b_load_cost * w.issued_b
    limits = (
        w.moved * (1 + lost) / x.memory_bytes_per_us,
        w.cached / x.sm_bytes_per_us,
        issued * np.where(w.shifted > 0, shift, 1.0) / x.issue_bytes_per_us,
        w.rounds * (x.latency_us + x.load_us * w.loads),
    )
    stream = sum(t**x.norm for t in limits) ** (1 / x.norm)
    reduction = x.reduce_us + x.reduce_warp_us * w.along + x.sum_us * w.summed
    reduction = w.waves * reduction + x.tail_us * w.tail
    reduction = reduction + x.split_us * w.split + x.split_sum_us * w.added
    packing = x.pack_us * (w.packed > 0) + w.packed / x.pack_bytes_per_us
    return Times(stream + reduction + packing + x.launch_us, limits)


def ctas_per_sm(problem: Problem, config: GemvConfig, gpu: GpuSpec) -> int:
    """Return how many CTAs a multiprocessor holds."""
    by_shared = gpu.sm_shared_bytes // (config.shared_bytes(problem) + RESERVED_SHARED_BYTES)
    by_registers = SM_REGISTERS // (config.threads * registers_of(problem, config))
    return max(1, min(by_shared, by_registers, gpu.sm_threads // config.threads))


def chunks(problem: Problem, config: GemvConfig) -> int:
    """Return the chunks of A that a lane loads in one iteration."""
    _, unit_k = warp_unit(problem)
    rows = config.tile[0] // config.warps[0]
    return rows * unit_k * config.stages * ELEMENT_BYTES[problem.dtype] // (32 * CHUNK_BYTES)


def accesses_of_b(problem: Problem, config: GemvConfig) -> int:
    """Return the accesses by which a lane loads its part of B in one iteration.

    Its elements are neighbours along k. It loads as many of them at once as are neighbours in
    memory, where all columns are aligned to them, or else if B is packed.
    """
    elements = chunk_elements(problem) if problem.a == "row" else _neighbours(problem)
    is_along_k = problem.b == "col" or problem.n == 1
    pitch = problem.k if problem.n > 1 else elements
    together = gcd(elements, pitch) if is_along_k and shift_classes(problem) == 1 else 1
    together = elements if config.packs_b else together
    return config.stages * config.column_tiles() * (elements // together)


def _tail(problem: Problem, config: GemvConfig) -> int:
    """Return the accesses of a lane after the K loop where chunks are shifted."""
    once = chunks(problem, config) + accesses_of_b(problem, config)
    if problem.a == "col":
        return once
    chunk = chunk_elements(problem)
    rows = HALVES * config.row_tiles(problem)
    ends = (chunk + problem.k % chunk) * (rows + config.column_tiles())
    return once + ends


def _neighbours(problem: Problem) -> int:
    """Return the neighbours along k of a lane's chunks, if A is contiguous along m."""
    return MMA_K_BYTES // CHUNK_BYTES * chunk_elements(problem) // THREADS


def registers_of(problem: Problem, config: GemvConfig) -> int:
    """Return the registers of a thread: accumulators, chunks of A and of B, and others."""
    words = CHUNK_BYTES // 4
    along_k = problem.a == "row"
    accumulators = config.row_tiles(problem) * config.column_tiles() * 4
    a = chunks(problem, config) * words
    b = config.stages * config.column_tiles() * (words if along_k else words // 2)
    if shift_classes(problem) > 1 and not config.packs_b:
        b *= 2  # each element has a register until two are packed
    return accumulators + ceil(_BUFFERS * (a + b)) + _OTHER_REGISTERS
