"""The heuristic for `wgmma` GEMMs: which config takes the least time, by `model`, corrected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np
import numpy.typing as npt

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.corrections.correction import corrected
from lego_mlir.kernels.gemm.corrections.wgmma import features_of
from lego_mlir.kernels.gemm.heuristic import fits
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.candidates import candidates, config_of, raster_group_of
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, Numbers, tiles_of
from lego_mlir.kernels.gemm.wgmma.model import Times, times_of
from lego_mlir.kernels.gemm.wgmma.work import Work, model_of, work_of

_RANKED = 32
"""Configs that are ranked; the rest of the table is only estimated."""

_CORRECTED = 256
"""Configs whose estimates are corrected: the first ones by the model. Others come after them."""

_NEAR_GROUPED = 1.07
"""Estimates of several GEMMs in one launch whose ratio is less than this are taken as equal."""

_SMALL_OPERANDS = 16
"""How often A and B go into a C along whose rows tiles are stored by threads. With one row of tiles
after another GEMMs of 13519×4087×15 and 8322×9989×28 took 43 and 67 µs on an H200, with 8 columns
or 11 rows at a time 58 and 107 (bench/results/gemm_raster_stores.jsonl)."""

_GROUPED_NORM = 12.0
"""The exponent that joins the limits of a step of several GEMMs in one launch."""


@dataclass(frozen=True, slots=True)
class WgmmaEstimate:
    """The time that the model gives a config.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        limit: what takes longest: a name of `model.LIMITS`, `power` or `memory`.
        model_us: the time by the model alone.
        extra_us: the time of copies that are made before.
    """

    config: WgmmaConfig
    microseconds: float
    limit: str
    model_us: float
    extra_us: float = 0.0

    def __str__(self) -> str:
        return f"{self.microseconds:8.1f} µs  {self.config}, limited by {self.limit}"


@dataclass(frozen=True, slots=True)
class Copying:
    """A way to bring operands to shared memory that TMA does not take.

    Attributes:
        by_threads: the operands, of the GEMM with a row-major C, of which threads copy tiles.
        extra_us: the time in which the others are copied before.
        adapted: returns a table of the configs as they are with the former copies.
        joined: returns the times of these, of those without the former copies.
    """

    by_threads: str
    extra_us: float
    adapted: Callable[[ConfigTable, Work], ConfigTable]
    joined: Callable[[ConfigTable, Work, Numbers], Numbers]


def choose(problem: Problem, target: Target, promote: int = 0) -> WgmmaConfig:
    """Return the tuned config of a GEMM if there is one, else the one that ranks first.

    Args:
        problem: the GEMM, with a row-major C.
        target: the GPU architecture.
        promote: iterations after which accumulators are promoted; 0 for none.

    Raises:
        LegoError: there is no cost model for the target, or no config that can be promoted.
    """
    gpu = spec_of(target)
    tuned = tuned_table.lookup(gpu.name, problem, WgmmaConfig)
    if tuned is not None and not promote:
        return tuned
    if gpu.wgmma_model is None:
        raise LegoError(
            f"matmul: there is no cost model of wgmma on {target.name}, taken for an {gpu.name}",
            hint="target='sm_90a', or a WgmmaConfig as config",
        )
    for found in estimates(problem, target, gpu):
        candidate = found.config
        if promote:
            candidate = replace(candidate, promote=promote, overlap_epilogue=False)
        if fits(candidate, lambda c: c.check(multiplied(problem, c), target.optin_shared_bytes)):
            return candidate
    raise LegoError(f"matmul: no config has registers to promote {promote} iterations")


def choose_grouped(
    problems: Sequence[Problem],
    target: Target,
    promote: int,
    count_tiles: Callable[[GemmConfig], int],
    check: Callable[[GemmConfig], None],
) -> WgmmaConfig | None:
    """Return the best config that fits several GEMMs in one launch; see `heuristic.Heuristic`."""
    gpu = spec_of(target)
    largest = max(problems, key=lambda p: p.m * p.n * p.k)
    configs = []
    for found in rank(largest, target):
        tile, consumers, stages = found.config.tile, found.config.consumers, found.config.stages
        plain = WgmmaConfig(tile, consumers, stages, promote=promote)
        is_persistent = count_tiles(plain) > gpu.multiprocessors
        config = replace(plain, persistent_ctas=gpu.multiprocessors if is_persistent else 0)
        if config not in configs and fits(config, check):
            configs.append(config)
    return rank_grouped(configs, problems, gpu)[0] if configs else None


def rank(problem: Problem, target: Target, gpu: GpuSpec | None = None) -> list[WgmmaEstimate]:
    """Return the estimates of the best configs, the fastest first; none without a cost model.

    Args:
        problem: the GEMM, with a row-major C.
        target: the GPU architecture.
        gpu: the card; the target's default card if `None`.
    """
    gpu = gpu or spec_of(target)
    if gpu.wgmma_model is None:
        return []
    return list(islice(estimates(problem, target, gpu), _RANKED))


def enumerate_configs(problem: Problem, target: Target) -> Iterator[WgmmaConfig]:
    """Yield the configs that fit a GEMM with a row-major C and a target, the fastest first."""
    return (found.config for found in estimates(problem, target, spec_of(target)))


def estimates(
    problem: Problem,
    target: Target,
    gpu: GpuSpec,
    further: Callable[[ConfigTable], Numbers] | None = None,
    copying: Sequence[Copying] = (),
) -> Iterator[WgmmaEstimate]:
    """Yield the estimates of the configs that fit, the fastest first.

    Args:
        problem: the GEMM, with a row-major C.
        target: the GPU architecture.
        gpu: a card with a model of `wgmma`.
        further: returns microseconds that configs take besides, where threads store C.
        copying: the ways to copy operands that TMA does not take; each config has the fastest.
    """
    stores = further is not None
    copies = any(way.by_threads for way in copying)
    table = candidates(problem, target, gpu, stores_by_threads=stores, copies_by_threads=copies)
    work = work_of(problem, table, gpu)
    by_model = _model_times(table, work, gpu, further)
    ways, extra, copied = np.zeros(len(table), int), np.zeros(len(table)), None
    if copying:
        rows = np.arange(len(table))
        tables = [way.adapted(table, work) for way in copying]
        pairs = zip(copying, tables, strict=True)
        totals = np.stack([way.joined(adapted, work, by_model.total) for way, adapted in pairs])
        each = np.array([[way.extra_us] for way in copying])
        ways = np.argmin(totals + each, axis=0)
        extra = each[ways, 0]
        copied = 1 - by_model.total / totals[ways, rows]
        by_model = replace(by_model, total=totals[ways, rows])
        table = table.replaced(stages=np.stack([t.stages for t in tables])[ways, rows])
    is_first = np.zeros(len(table), bool)
    is_first[np.argsort(by_model.total + extra, kind="stable")[:_CORRECTED]] = True
    times = _corrected(problem, table, work, gpu, by_model, is_first, stores, copied)
    along_c = _groups_along_c(problem, table) if further is not None else None
    # Of equal estimates the one that needs least: no cluster, no persistence.
    keys = (table.persistent_ctas, table.down * table.across, times.total + extra, ~is_first)
    order = np.lexsort(keys)
    for row in order:
        if along_c is None:
            group = raster_group_of(int(table.m[row]), int(table.n[row]), int(work.busy[row]))
        else:
            group = int(along_c[row])
        config = config_of(table, int(row), problem, group)
        if copying and copying[ways[row]].by_threads:
            config = replace(config, copied_by_threads=copying[ways[row]].by_threads)
        if fits(config, lambda c: c.check(multiplied(problem, c), target.optin_shared_bytes)):
            yield _estimate(config, times, by_model, int(row), float(extra[row]))


def _model_times(
    table: ConfigTable,
    work: Work,
    gpu: GpuSpec,
    further: Callable[[ConfigTable], Numbers] | None = None,
) -> Times:
    """Return the times of configs by the model; arguments are those of `estimates`."""
    times = times_of(work, model_of(gpu))
    return times if further is None else replace(times, total=times.total + further(table))


def _corrected(
    problem: Problem,
    table: ConfigTable,
    work: Work,
    gpu: GpuSpec,
    times: Times,
    rows: npt.NDArray[np.bool_],
    stores_by_threads: bool = False,
    copied: Numbers | None = None,
) -> Times:
    """Return times of which those of some rows are corrected, as far as the card does."""
    correction = gpu.corrections.get("wgmma")
    if correction is None:
        return times
    features = features_of(
        problem,
        table,
        work,
        times,
        model_of(gpu),
        stores_by_threads=stores_by_threads,
        copied=copied,
    )
    some = {name: column[rows] for name, column in features.items()}
    total = times.total.copy()
    total[rows] = corrected(total[rows], some, correction)
    return replace(times, total=total)


def _times(problem: Problem, configs: Sequence[WgmmaConfig], gpu: GpuSpec) -> tuple[Times, Times]:
    """Return the times of configs whose C is stored by TMA: by the model, and corrected."""
    table = ConfigTable.of(configs, ELEMENT_BYTES[problem.dtype])
    work = work_of(problem, table, gpu)
    times = _model_times(table, work, gpu)
    return times, _corrected(problem, table, work, gpu, times, np.ones(len(table), bool))


def _groups_along_c(problem: Problem, table: ConfigTable) -> Numbers | None:
    """Return the raster groups for which CTAs with consecutive ids store along rows of C.

    Rows that begin anywhere share sectors with their neighbours in the next tile. The L2 cache
    writes a sector once if both parts come soon, before a large C drives it out. `None` if it is
    better to read few tiles of A and B: they are not small beside C.
    """
    size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
    operands = (problem.m + problem.n) * problem.k * size
    if operands * _SMALL_OPERANDS > problem.m * problem.n * out:
        return None
    down, _ = tiles_of(problem, table)
    groups: Numbers = np.where(table.swap > 0, down, 1)  # of one row of tiles, or of one column
    return groups


def estimate(problem: Problem, config: WgmmaConfig, gpu: GpuSpec) -> WgmmaEstimate:
    """Return the estimate of a config.

    Args:
        problem: the GEMM, with a row-major C.
        config: the config.
        gpu: a card with a model of `wgmma`.
    """
    by_model, times = _times(problem, [config], gpu)
    return _estimate(config, times, by_model, 0)


def microseconds(problem: Problem, configs: Sequence[WgmmaConfig], gpu: GpuSpec) -> list[float]:
    """Return the estimated times of configs; see `heuristic.Heuristic`."""
    _, times = _times(problem, configs, gpu)
    return [float(t) for t in times.total]


def _estimate(
    config: WgmmaConfig, times: Times, by_model: Times, row: int, extra_us: float = 0.0
) -> WgmmaEstimate:
    us, model_us = float(times.total[row]), float(by_model.total[row])
    return WgmmaEstimate(config, us, times.limit(row), model_us, extra_us)


def multiplied(problem: Problem, config: GemmConfig) -> Problem:
    """Return the GEMM that a config multiplies: the transpose if it swaps A and B."""
    return problem.transpose if config.is_swapped else problem


# ------------------------------------------------------------------- several GEMMs in one launch
def rank_grouped(
    configs: Sequence[WgmmaConfig], problems: Sequence[Problem], gpu: GpuSpec
) -> list[WgmmaConfig]:
    """Return configs of several GEMMs in one launch, the fastest first.

    Of those whose times are taken as equal, the one with the largest tile comes first: it was the
    fastest for the six mixtures of experts that were measured on an H200.
    """
    times = dict(zip(configs, _grouped_times(configs, problems, gpu), strict=True))
    near = _NEAR_GROUPED * min(times.values())
    return sorted(
        times,
        key=lambda c: (0, -prod(c.tile[:2]), -c.stages) if times[c] <= near else (1, times[c], 0),
    )


def _grouped_times(
    configs: Sequence[WgmmaConfig], problems: Sequence[Problem], gpu: GpuSpec
) -> list[float]:
    """Return the microseconds of several GEMMs in one launch by config: waves of average tiles."""
    # Tiles of different GEMMs run side by side, so that what limits one does not add to the others.
    model = replace(model_of(gpu), step_norm=_GROUPED_NORM)
    table = ConfigTable.of(configs, ELEMENT_BYTES[problems[0].dtype])
    ctas, busy_us, moved = np.zeros(len(table)), np.zeros(len(table)), 0.0
    for problem in problems:
        tiles = np.array([c.work_items(problem) for c in configs])
        # One wave of the whole card: all multiprocessors are busy with some GEMM.
        work = replace(
            work_of(problem, table.replaced(persistent_ctas=gpu.multiprocessors), gpu),
            waves=np.ones(len(table)),
            busy=np.full(len(table), float(gpu.multiprocessors)),
            flops=np.zeros(len(table)),
            blocked=np.zeros(len(table)),
            bytes=np.zeros(len(table)),
        )
        busy_us += tiles * (times_of(work, model).total - model.launch_us)
        ctas += tiles
        size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
        moved += (problem.m + problem.n) * problem.k * size + problem.m * problem.n * out
    waves = np.ceil(ctas / gpu.multiprocessors)
    times = np.maximum(waves * busy_us / ctas, moved / model.memory_bytes_per_us)
    return [float(t) + model.launch_us for t in times]
