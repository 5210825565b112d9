"""The heuristic for `mma.sync` GEMMs: which config takes the least time, by `model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MAX_THREAD_REGISTERS
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.corrections.correction import corrected
from lego_mlir.kernels.gemm.corrections.mma import features_of
from lego_mlir.kernels.gemm.heuristic import fits
from lego_mlir.kernels.gemm.matrices import ALIGNMENT
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.mma.model import (
    LIMITS,
    ctas_per_sm,
    registers_of,
    times_of,
    work_of,
)
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


@dataclass(frozen=True, slots=True)
class MmaEstimate:
    """The time that the model gives a config.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        ctas_per_sm: CTAs that a multiprocessor holds at a time.
        limit: what takes longest: `tensor cores`, `shared memory`, `cache`, `latency` or `memory`.
        model_us: the time by the model alone.
    """

    config: MmaConfig
    microseconds: float
    ctas_per_sm: int
    limit: str
    model_us: float

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


def rank(
    problem: Problem, target: Target, gpu: GpuSpec | None = None, alignment: int = ALIGNMENT
) -> list[MmaEstimate]:
    """Return the estimates of all configs, the fastest first; see `heuristic.Heuristic`.

    Args:
        problem: the GEMM, with a row-major C.
        target: the GPU architecture.
        gpu: the card; the target's default card if `None`.
        alignment: bytes that the addresses of the matrices are a multiple of.
    """
    gpu = gpu or spec_of(target)
    found = _estimates(problem, list(enumerate_configs(problem, target)), gpu, alignment)
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
                and registers_of(config) <= MAX_THREAD_REGISTERS
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
    return _estimates(problem, [config], gpu, ALIGNMENT)[0]


def microseconds(problem: Problem, configs: Sequence[MmaConfig], gpu: GpuSpec) -> list[float]:
    """Return the estimated times of configs; see `heuristic.Heuristic`."""
    return [found.microseconds for found in _estimates(problem, configs, gpu, ALIGNMENT)]


def _estimates(
    problem: Problem, configs: Sequence[MmaConfig], gpu: GpuSpec, alignment: int
) -> list[MmaEstimate]:
    """Return the estimates of configs, in their order."""
    work = work_of(problem, configs, gpu, alignment)
    times, limits = times_of(work, gpu.mma_model), np.argmax(work.limits(work.held), axis=0)
    by_model, is_memory = times, times <= work.memory_us
    if "mma" in gpu.corrections:
        features = features_of(problem, configs, work, times)
        times = corrected(times, features, gpu.corrections["mma"])
    return [
        MmaEstimate(
            config,
            float(time),
            int(held),
            "memory" if memory else LIMITS[int(limit)],
            float(model_us),
        )
        for config, time, held, memory, limit, model_us in zip(
            configs, times, work.held, is_memory, limits, by_model, strict=True
        )
    ]
