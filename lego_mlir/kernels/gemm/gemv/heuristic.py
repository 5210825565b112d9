"""The heuristic for GEMMs with few columns of C: which config takes the least time.

Such a GEMM reads a matrix once, so at best it takes as long as device memory. By Little's law it
gets there only if enough bytes are in flight. A warp loads the chunks of an iteration, waits for
them, and multiplies; so the launch takes at least a memory latency for each iteration of the waves
of CTAs. The columns of B are read by every CTA from the L2 cache. The sum of the accumulators of
the warps along k, and the launch, come on top. `estimate` is the formula; the constants stand here
until they are those of a card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MMA_COLUMNS, RESERVED_SHARED_BYTES, SM_REGISTERS
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.config import (
    CHUNK_BYTES,
    MAX_COLUMNS,
    GemvConfig,
    shift_classes,
    warp_unit,
)
from lego_mlir.kernels.gemm.heuristic import fits
from lego_mlir.kernels.gemm.problem import Problem

_LATENCY_US = 0.9
"""Latency of device memory under load: from an iteration's loads to its last `mma`."""

_LAUNCH_US = 2.0
"""A launch, besides its waves."""

_REDUCE_US = 0.3
_REDUCE_WARP_US = 0.02
"""Adding the accumulators of a CTA's warps, and the same for each warp along k."""

_SMOOTH = 4.0
"""Exponent with which times that overlap are added: 1 for their sum, ∞ for the longest."""

_BUFFERS = 1.6
"""Registers for each register of chunks: chunks are loaded while those before them are multiplied
(ptxas 13, on 8 configs)."""

_OTHER_REGISTERS = 12
"""Registers of a thread besides accumulators and operands: addresses, counters."""

_MAX_REGISTERS = 200
"""Estimated registers of a thread up to which no register is spilled."""

_USABLE = {"row": 0.8, "col": 0.9}
"""By the order of A, the share of a thread's registers that the estimate may reach without spills:
of 250 configs of random GEMMs, none below it was spilled, and 8 above it (ptxas 13)."""

_MAX_WARPS = 32
_UNITS, _DOWN, _ALONG, _STAGES = (1, 2), (1, 2, 4), (1, 2, 4, 8, 16, 32), (1, 2, 4)


@dataclass(frozen=True, slots=True)
class GemvEstimate:
    """The time that the model gives a config.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        limit: what takes longest: `memory`, `cache` or `latency`.
        bytes_in_flight: bytes of A that the warps of a multiprocessor load at the same time.
    """

    config: GemvConfig
    microseconds: float
    limit: str
    bytes_in_flight: int

    def __str__(self) -> str:
        kib = self.bytes_in_flight / 1024
        return (
            f"{self.microseconds:8.1f} µs  {self.config}, {kib:.0f} KiB in flight per SM, "
            f"limited by {self.limit}"
        )


def choose(problem: Problem, target: Target, promote: int = 0) -> GemvConfig:
    """Return the tuned config of a GEMM if there is one, else the one that ranks first.

    `promote` has no effect: `mma.sync` accumulates in full precision.

    Raises:
        LegoError: C has more columns, and more rows, than a CTA computes.
    """
    tuned = tuned_table.lookup(spec_of(target).name, problem, GemvConfig)
    if tuned is not None:
        return tuned
    ranked = rank(problem, target)
    if not ranked:
        raise LegoError(
            f"the schedule '{GemvConfig.schedule}' is for a C of at most {MAX_COLUMNS} rows or "
            f"columns, not of {problem.m}×{problem.n}"
        )
    return ranked[0].config


def choose_grouped(
    problems: Sequence[Problem],
    target: Target,
    promote: int,
    count_tiles: Callable[[GemmConfig], int],
    check: Callable[[GemmConfig], None],
) -> GemvConfig | None:
    """Return `None`: several GEMMs in one launch are tiles of `wgmma` or `mma.sync`."""
    return None


def rank(problem: Problem, target: Target, gpu: GpuSpec | None = None) -> list[GemvEstimate]:
    """Return the estimates of all configs, the fastest first; see `heuristic.Heuristic`."""
    gpu = gpu or spec_of(target)
    found = [
        estimate(problem.transpose if config.swap_ab else problem, config, gpu)
        for config in enumerate_configs(problem, target)
    ]
    return sorted(found, key=lambda e: (e.microseconds, e.config.threads, e.config.tile))


def enumerate_configs(problem: Problem, target: Target) -> Iterator[GemvConfig]:
    """Yield the configs that fit a GEMM and a target."""
    for swap_ab in (False, True):
        multiplied = problem.transpose if swap_ab else problem
        if multiplied.n > MAX_COLUMNS:
            continue
        unit_rows, unit_k = warp_unit(multiplied)
        least = shift_classes(multiplied) if multiplied.a == "col" else 1  # of warps along k
        columns = MMA_COLUMNS * -(-multiplied.n // MMA_COLUMNS)
        for units, down, along, stages in product(_UNITS, _DOWN, _ALONG, _STAGES):
            rows, k = unit_rows * units * down, unit_k * along * stages
            is_useful = (units * down == 1 or rows < 2 * multiplied.m) and (
                along * stages <= least or k < 2 * multiplied.k
            )
            if down * along > _MAX_WARPS or not is_useful:
                continue
            config = GemvConfig((rows, columns, k), (down, along), stages, swap_ab=swap_ab)
            registers = _registers(multiplied, config)
            room = min(_MAX_REGISTERS, SM_REGISTERS // config.threads)
            is_resident = registers <= _USABLE[multiplied.a] * room
            if is_resident and fits(
                config,
                lambda c, p=multiplied: c.check(p, target.optin_shared_bytes),  # type: ignore[misc]
            ):
                yield config


def estimate(problem: Problem, config: GemvConfig, gpu: GpuSpec) -> GemvEstimate:
    """Return the estimate of a config.

    Args:
        problem: the GEMM that is multiplied: the transpose if the config swaps A and B.
        config: the config.
        gpu: the card.
    """
    size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
    ctas = prod(config.tiles(problem)) * problem.batch
    held = ctas_per_sm(problem, config, gpu)
    waves = ctas / (gpu.multiprocessors * held)
    a = problem.m * problem.k * size * problem.batch
    b = problem.n * problem.k * size
    moved = a + b * problem.batch + problem.m * problem.n * out * problem.batch
    cached = a * config.tile[0] / config.output_rows(problem) + b * ctas
    times = {
        "memory": moved / _memory_bytes_per_us(gpu),
        "cache": cached
        / (gpu.l2_bytes_per_clock * gpu.clock_ghz * 1e3)
        / min(gpu.multiprocessors, ctas),
        "latency": max(1.0, waves) * config.k_iterations(problem) * _LATENCY_US,
    }
    stream: float = sum(t**_SMOOTH for t in times.values()) ** (1 / _SMOOTH)
    reduction = ceil(waves) * (_REDUCE_US + _REDUCE_WARP_US * config.warps[1])
    resident = min(held, -(-ctas // gpu.multiprocessors))
    return GemvEstimate(
        config,
        stream + reduction + _LAUNCH_US,
        max(times, key=lambda name: times[name]),
        resident * config.threads * _chunks(problem, config) * CHUNK_BYTES,
    )


def _memory_bytes_per_us(gpu: GpuSpec) -> float:
    """Return the rate of device memory: that of the model which this one is compared with."""
    model = gpu.wgmma_model
    return gpu.memory_gb_per_s * 1e3 if model is None else model.memory_bytes_per_us


def ctas_per_sm(problem: Problem, config: GemvConfig, gpu: GpuSpec) -> int:
    """Return how many CTAs a multiprocessor holds."""
    by_shared = gpu.sm_shared_bytes // (config.shared_bytes(problem) + RESERVED_SHARED_BYTES)
    by_registers = SM_REGISTERS // (config.threads * _registers(problem, config))
    return max(1, min(by_shared, by_registers, gpu.sm_threads // config.threads))


def _chunks(problem: Problem, config: GemvConfig) -> int:
    """Return the chunks of A that a lane loads in one iteration."""
    _, unit_k = warp_unit(problem)
    rows = config.tile[0] // config.warps[0]
    return rows * unit_k * config.stages * ELEMENT_BYTES[problem.dtype] // (32 * CHUNK_BYTES)


def _registers(problem: Problem, config: GemvConfig) -> int:
    """Return the registers of a thread: accumulators, chunks of A and of B, and others."""
    words = CHUNK_BYTES // 4
    along_k = problem.a == "row"
    accumulators = config.row_tiles(problem) * config.column_tiles() * 4
    a = _chunks(problem, config) * words
    b = config.stages * config.column_tiles() * (words if along_k else words // 2)
    if shift_classes(problem) > 1:
        b *= 2  # each element has a register until two are packed
    return accumulators + ceil(_BUFFERS * (a + b)) + _OTHER_REGISTERS
