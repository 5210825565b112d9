"""The heuristic for GEMMs with few columns of C: which config takes the least time, by `model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MMA_COLUMNS, SM_REGISTERS
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.corrections.correction import corrected
from lego_mlir.kernels.gemm.corrections.gemv import features_of
from lego_mlir.kernels.gemm.gemv.chunks import shift_classes, warp_unit
from lego_mlir.kernels.gemm.gemv.config import MAX_COLUMNS, GemvConfig
from lego_mlir.kernels.gemm.gemv.model import LIMITS, registers_of, times_of, work_of
from lego_mlir.kernels.gemm.heuristic import fits
from lego_mlir.kernels.gemm.problem import Problem

_MAX_REGISTERS = 200
"""Estimated registers of a thread up to which no register is spilled."""

_USABLE = {"row": 0.8, "col": 0.9}
"""By the order of A, the share of a thread's registers that the estimate may reach without spills:
of 250 configs of random GEMMs, none below it was spilled, and 8 above it (ptxas 13)."""

_MAX_WARPS = 32
_UNITS, _DOWN, _ALONG, _STAGES = (1, 2), (1, 2, 4), (1, 2, 4, 8, 16, 32), (1, 2, 4)
_SPLITS = (2, 4, 8, 16, 32)

_MAX_SLICE_WARPS = 16
"""Warps along k of a CTA that computes a slice of k."""

_MAX_SLICES_PER_SM = 2
"""CTAs of a multiprocessor that compute slices of k, at most: more only add to what is reduced."""


@dataclass(frozen=True, slots=True)
class GemvEstimate:
    """The time that the model gives a config.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        limit: what takes longest: a name of `model.LIMITS`.
        bytes_in_flight: bytes of A that the warps of a multiprocessor load at the same time.
        model_us: the time by the model alone.
    """

    config: GemvConfig
    microseconds: float
    limit: str
    bytes_in_flight: int
    model_us: float

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
    found = _estimates_of(problem, list(enumerate_configs(problem, target, gpu)), gpu)
    return sorted(found, key=lambda e: (e.microseconds, e.config.threads, e.config.tile))


def enumerate_configs(
    problem: Problem, target: Target, gpu: GpuSpec | None = None
) -> Iterator[GemvConfig]:
    """Yield the configs that fit a GEMM and a target.

    Args:
        problem: the GEMM, with a row-major C.
        target: the GPU architecture.
        gpu: the card; the target's default card if `None`.
    """
    gpu = gpu or spec_of(target)
    for swap_ab in (False, True):
        multiplied = problem.transpose if swap_ab else problem
        if multiplied.n > MAX_COLUMNS:
            continue
        for config in _configs(multiplied, gpu):
            config = replace(config, swap_ab=True) if swap_ab else config
            registers = registers_of(multiplied, config)
            room = min(_MAX_REGISTERS, SM_REGISTERS // config.threads)
            is_resident = registers <= _USABLE[multiplied.a] * room
            if is_resident and fits(
                config,
                lambda c, p=multiplied: c.check(p, target.optin_shared_bytes),  # type: ignore[misc]
            ):
                yield config


def _configs(problem: Problem, gpu: GpuSpec) -> Iterator[GemvConfig]:
    """Yield the configs whose tiles are of use for a GEMM.

    Slices of k are for GEMMs of so few rows that CTAs of all of k leave multiprocessors idle.
    """
    unit_rows, unit_k = warp_unit(problem)
    least = shift_classes(problem) if problem.a == "col" else 1  # of warps along k
    columns = MMA_COLUMNS * -(-problem.n // MMA_COLUMNS)
    for units, down, along, stages in product(_UNITS, _DOWN, _ALONG, _STAGES):
        rows, k = unit_rows * units * down, unit_k * along * stages
        is_useful = (units * down == 1 or rows < 2 * problem.m) and (
            along * stages <= least or k < 2 * problem.k
        )
        if down * along > _MAX_WARPS or not is_useful:
            continue
        plain = GemvConfig((rows, columns, k), (down, along), stages)
        yield from _packed_too(problem, plain)
        if units * down > 1 or not 1 < along <= _MAX_SLICE_WARPS:
            continue
        tiles = prod(plain.tiles(problem)) * problem.batch
        for split_k in _SPLITS:
            is_useful = k * split_k < 2 * problem.k
            if is_useful and tiles * split_k <= _MAX_SLICES_PER_SM * gpu.multiprocessors:
                slices = replace(plain, tile=(rows, columns, k * split_k), split_k=split_k)
                yield from _packed_too(problem, slices)


def _packed_too(problem: Problem, config: GemvConfig) -> Iterator[GemvConfig]:
    """Yield a config, and where that is of use also with a packed B."""
    yield config
    if shift_classes(problem) > 1 and config.k_iterations(problem) > 1:
        yield replace(config, packs_b=True)


def estimate(problem: Problem, config: GemvConfig, gpu: GpuSpec) -> GemvEstimate:
    """Return the estimate of a config.

    Args:
        problem: the GEMM that is multiplied: the transpose if the config swaps A and B.
        config: the config.
        gpu: the card.
    """
    return _estimates(problem, [config], gpu)[0]


def microseconds(problem: Problem, configs: Sequence[GemvConfig], gpu: GpuSpec) -> list[float]:
    """Return the estimated times of configs; see `heuristic.Heuristic`."""
    return [found.microseconds for found in _estimates_of(problem, configs, gpu)]


def _estimates_of(
    problem: Problem, configs: Sequence[GemvConfig], gpu: GpuSpec
) -> list[GemvEstimate]:
    """Return the estimates of configs, in their order, some of which may swap A and B."""
    found: dict[GemvConfig, GemvEstimate] = {}
    for swap_ab in (False, True):
        some = [config for config in configs if config.swap_ab == swap_ab]
        if some:
            multiplied = problem.transpose if swap_ab else problem
            found |= zip(some, _estimates(multiplied, some, gpu), strict=True)
    return [found[config] for config in configs]


def _estimates(problem: Problem, configs: Sequence[GemvConfig], gpu: GpuSpec) -> list[GemvEstimate]:
    """Return the estimates of configs, in their order."""
    work = work_of(problem, configs, gpu)
    times = times_of(work, gpu.gemv_model)
    total = times.total
    if "gemv" in gpu.corrections:
        features = features_of(problem, configs, work, times)
        total = corrected(total, features, gpu.corrections["gemv"])
    longest = np.argmax(times.limits, axis=0)
    return [
        GemvEstimate(config, float(us), LIMITS[int(limit)], int(in_flight), float(model_us))
        for config, us, limit, in_flight, model_us in zip(
            configs, total, longest, work.in_flight, times.total, strict=True
        )
    ]
