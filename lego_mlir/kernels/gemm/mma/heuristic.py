"""The heuristic for `mma.sync` GEMMs: which config takes the least time, by a cost model.

A multiprocessor holds as many CTAs as its shared memory and registers allow. Each of their K-loop
iterations multiplies one tile of A and one of B and takes as long as the busiest of

- the tensor cores: 2 m n k operations,
- shared memory: the tiles are written once, and every warp reads its rows and columns of them,
- the L2 cache: the tiles are read once,

or as long as the latency of a copy, if too few stages are in flight. Each round of iterations, one
for every CTA, ends with barriers and first loads, in which nothing is multiplied. Before its first
iteration a CTA waits for memory; after its last it stores its tile. The CTAs of a GEMM run in
waves; the last wave may take as long as the others and be nearly empty. No GEMM is faster than
device memory moves its matrices. (The terms are those of the roofline model; the waves are NVIDIA's
"tile quantization" and "wave quantization", Matrix Multiplication Background User's Guide.)

The constants are `GpuSpec.mma_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MAX_THREAD_REGISTERS, RESERVED_SHARED_BYTES, SM_REGISTERS
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.heuristic import fits
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem

_TILES = (
    (128, 256, 2, 4),
    (256, 128, 4, 2),
    (128, 128, 2, 2),
    (128, 128, 2, 4),
    (256, 64, 4, 1),
    (64, 256, 1, 4),
    (64, 128, 2, 2),
    (128, 64, 2, 2),
    (64, 64, 2, 2),
    (128, 32, 4, 1),
    (32, 128, 1, 4),
    (64, 32, 2, 2),
    (32, 64, 2, 2),
    (32, 32, 2, 2),
    (16, 128, 1, 4),
    (16, 64, 1, 4),
)
"""Rows, columns, and warps down and across. Of configs with equal estimates the first is chosen."""

_K_BYTES = 128
"""Bytes of k in a tile: a line of shared memory."""

_MIN_STAGES, _MAX_STAGES = 3, 8
"""With two stages, copies that are issued between the `mma` of an iteration must arrive by its last
quarter: 128×192×64 with two stages took a ninth longer than 128×128×64 with three."""

_OTHER_REGISTERS = 32
"""Registers of a thread besides accumulators and operands: addresses, counters."""


@dataclass(frozen=True, slots=True)
class MmaEstimate:
    """The time that the model gives a config.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        ctas_per_sm: CTAs that a multiprocessor holds at a time.
        limit: what takes longest: `tensor cores`, `shared memory`, `cache`, `latency` or `memory`.
    """

    config: MmaConfig
    microseconds: float
    ctas_per_sm: int
    limit: str

    def __str__(self) -> str:
        per_sm = "1 CTA per SM" if self.ctas_per_sm == 1 else f"{self.ctas_per_sm} CTAs per SM"
        return f"{self.microseconds:8.1f} µs  {self.config}, {per_sm}, limited by {self.limit}"


def choose(problem: Problem, target: Target, promote: int = 0) -> MmaConfig:
    """Return the tuned config of a GEMM if there is one, else the one that ranks first.

    `promote` has no effect: `mma.sync` accumulates in full precision.
    """
    tuned = tuned_table.lookup(spec_of(target).name, problem, MmaConfig)
    return tuned or rank(problem, target)[0].config


def choose_grouped(
    problems: Sequence[Problem],
    target: Target,
    promote: int,
    count_tiles: Callable[[GemmConfig], int],
    check: Callable[[GemmConfig], None],
) -> MmaConfig | None:
    """Return the first config for the largest GEMM that fits all; see `heuristic.Heuristic`."""
    largest = max(problems, key=lambda p: p.m * p.n * p.k)
    configs = (found.config for found in rank(largest, target))
    return next((config for config in configs if fits(config, check)), None)


def rank(problem: Problem, target: Target, gpu: GpuSpec | None = None) -> list[MmaEstimate]:
    """Return the estimates of all configs, the fastest first; see `heuristic.Heuristic`."""
    gpu = gpu or spec_of(target)
    found = [estimate(problem, config, gpu) for config in enumerate_configs(problem, target)]
    return sorted(found, key=lambda e: (e.microseconds, -e.config.stages))


def enumerate_configs(problem: Problem, target: Target) -> Iterator[MmaConfig]:
    """Yield the configs that fit a GEMM and a target.

    Of the numbers of stages with the same number of CTAs per SM only the largest is yielded.
    """
    gpu, size = spec_of(target), ELEMENT_BYTES[problem.dtype]
    narrowest = 32 if problem.m > 16 else 64  # of the tiles with so many rows
    for m, n, down, across in _TILES:
        # A tile of twice the matrix is no use; the smallest is for the smallest matrix.
        if m >= 2 * max(problem.m, 16) or n >= 2 * max(problem.n, narrowest):
            continue
        found: dict[int, MmaConfig] = {}
        for stages in range(2, _MAX_STAGES + 1):
            config = MmaConfig((m, n, _K_BYTES // size), (down, across), stages)
            iterations = config.k_iterations(problem)
            if stages > max(2, iterations):
                break
            if stages < min(_MIN_STAGES, iterations):
                continue
            if (
                config.shared_bytes(problem) <= target.optin_shared_bytes
                and _registers(config) <= MAX_THREAD_REGISTERS
            ):
                found[ctas_per_sm(problem, config, gpu)] = config
        yield from found.values()


def estimate(problem: Problem, config: MmaConfig, gpu: GpuSpec) -> MmaEstimate:
    """Return the estimate of a config.

    Args:
        problem: the GEMM.
        config: the config.
        gpu: the card.
    """
    model = gpu.mma_model
    m, n, _ = config.tile
    size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
    down, across = config.tiles(problem)
    busiest = ceil(down * across * problem.batch / gpu.multiprocessors)
    held = min(ctas_per_sm(problem, config, gpu), busiest)
    iterations, store = config.k_iterations(problem), m * n * out / model.store_bytes_per_clock

    def wave(ctas: int) -> float:
        """Return the clocks of one wave of so many CTAs on a multiprocessor."""
        iteration = max(_iteration(problem, config, gpu, ctas).values())
        ahead = min(3, (config.stages - 1) * ctas)
        between = model.iteration_clocks + model.late_copy_clocks * (3 - ahead)
        return iterations * (ctas * iteration + between) + ctas * store + model.cta_clocks

    full, rest = divmod(busiest, held)
    clocks = full * wave(held) + (wave(rest) if rest else 0)
    read = (problem.m + problem.n) * problem.k * size
    moved = problem.batch * (read + problem.m * problem.n * out)
    time, memory = clocks / gpu.clock_ghz / 1e3, moved / gpu.memory_gb_per_s / 1e3
    iteration = _iteration(problem, config, gpu, held)
    limit = "memory" if memory > time else max(iteration, key=lambda name: iteration[name])
    return MmaEstimate(config, max(time, memory), held, limit)


def _iteration(problem: Problem, config: MmaConfig, gpu: GpuSpec, ctas: int) -> dict[str, float]:
    """Return the clocks of one CTA's iteration by resource, with so many CTAs on a SM."""
    m, n, k = config.tile
    size, stage = ELEMENT_BYTES[problem.dtype], config.stage_bytes(problem)
    read = (config.warps[1] * m + config.warps[0] * n) * k * size
    return {
        "tensor cores": m * n * k * size / gpu.mma_flops_per_clock,
        "shared memory": (stage + read) / gpu.shared_bytes_per_clock,
        "cache": stage / gpu.l2_bytes_per_clock,
        "latency": gpu.l2_latency_clocks / (config.stages - 1) / ctas,
    }


def ctas_per_sm(problem: Problem, config: MmaConfig, gpu: GpuSpec) -> int:
    """Return how many CTAs a multiprocessor holds."""
    by_shared = gpu.sm_shared_bytes // (config.shared_bytes(problem) + RESERVED_SHARED_BYTES)
    registers = min(MAX_THREAD_REGISTERS, _registers(config))
    by_registers = SM_REGISTERS // (config.threads * registers)
    return max(1, min(by_shared, by_registers, gpu.sm_threads // config.threads))


def _registers(config: MmaConfig) -> int:
    """Return the registers of a thread: accumulators, two operand fragments, and others."""
    m, n, _ = config.tile
    down, across = m // config.warps[0], n // config.warps[1]
    return down * across // 32 + 2 * (down // 16 * 4 + across // 8 * 2) + _OTHER_REGISTERS
