"""The heuristic for `wgmma` GEMMs: which config takes the least time, by a fitted cost model.

CTAs compute tiles of C in waves, one CTA for each multiprocessor. An iteration of the K loop takes
as long as the slowest of

- the tensor cores,
- the L2 cache, from which all CTAs read their tiles; a cluster reads what it shares once,
- the latency of a copy, divided by the stages in flight.

After its last iteration a tile is stored, unless the epilogue overlaps the next main loop. Long
launches are limited by power: then the operations count, including those on the empty parts of
tiles, and the bytes that are read from the cache. No GEMM is faster than device memory moves its
matrices.

The constants are `GpuSpec.wgmma_model`, which `hardware.specs` describes. The model is for ranking:
its times are up to a quarter off. On an H200 the config that it ranked first was at most 2 % slower
than the best one measured, 3 % for the smallest GEMM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import WGMMA_ROWS
from lego_mlir.hardware.specs import GpuSpec, WgmmaModel, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.heuristic import fits
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

_NEAR = 1.02
"""Estimates whose ratio is less than this are taken as equal."""

_NEAR_GROUPED = 1.07
"""The same for several GEMMs in one launch, of which less was measured."""

_NARROW = (16, 32, 64, 128, 256)
"""Columns of tiles of 64 rows, for one consumer warpgroup."""

_WIDE = ((128, 64), (128, 128), (128, 192), (128, 256), (256, 128))
"""Rows and columns of tiles for two consumer warpgroups."""

_MIN_WAVES_COLUMNS = 128
"""Columns of a tile, at least, that keep the tensor cores busy over several waves."""

_ROW_BYTES = 128
"""Bytes of k in a tile: a row of the widest swizzle."""

_MAX_STAGES = 8

_MAX_REGISTERS = 192
"""Registers of a thread for accumulators and for a result whose store is overlapped."""


_ARRIVAL_US = 2.0
"""Split-K through the L2 cache: from a CTA's last addition to the first load of the last CTA."""

_ADD_US_PER_BYTE = 2.3e-7
"""The same: adding a byte of accumulators to those in the L2 cache, of all CTAs together."""

_LOAD_US_PER_BYTE = 1.5e-5
"""The same: loading a byte of sums, and storing zeros, in the last CTA of a tile."""


@dataclass(frozen=True, slots=True)
class WgmmaEstimate:
    """The time that the model gives a config.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        power: the time in microseconds if power were the only limit.
        limit: what takes longest: `tensor cores`, `cache`, `latency`, `power` or `memory`.
    """

    config: WgmmaConfig
    microseconds: float
    power: float
    limit: str

    def __str__(self) -> str:
        return f"{self.microseconds:8.1f} µs  {self.config}, limited by {self.limit}"


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
    configs = [found.config for found in rank(problem, target)]
    if not configs:
        raise LegoError(
            f"matmul: there is no cost model of wgmma on {target.name}, taken for an {gpu.name}",
            hint="target='sm_90a', or a WgmmaConfig as config",
        )
    if not promote:
        return configs[0]
    for config in configs:
        candidate = replace(config, promote=promote, overlap_epilogue=False)
        if fits(candidate, lambda c: c.check(_multiplied(problem, c), target.optin_shared_bytes)):
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
        if fits(config, check):
            configs.append(config)
    return rank_grouped(configs, problems, gpu)[0] if configs else None


def rank(problem: Problem, target: Target) -> list[WgmmaEstimate]:
    """Return the estimates of all configs, the fastest first; none without a cost model.

    Args:
        problem: the GEMM, with a row-major C.
        target: the GPU architecture.
    """
    gpu = spec_of(target)
    if gpu.wgmma_model is None:
        return []
    found = [
        estimate(_multiplied(problem, config), config, gpu)
        for config in enumerate_configs(problem, target)
    ]
    found.sort(key=lambda e: e.microseconds)
    count = sum(e.microseconds <= _NEAR * found[0].microseconds for e in found)
    return sorted(found[:count], key=_preference) + found[count:]


def _preference(found: WgmmaEstimate) -> tuple[float, ...]:
    """Return a key that orders estimates taken as equal.

    Large tiles with an overlapped epilogue were the fastest on a cool GPU too, whose clocks the
    model was not fitted to; so were clusters, if the operands do not fit the cache. Of small tiles,
    those of one consumer warpgroup were faster.
    """
    config = found.config
    size = prod(config.tile[:2]) if config.overlap_epilogue else 0
    is_alone = not (config.overlap_epilogue and max(config.cluster) > 1)
    return -size, is_alone, found.microseconds, config.consumers, found.power, config.swap_ab


def rank_grouped(
    configs: Sequence[WgmmaConfig], problems: Sequence[Problem], gpu: GpuSpec
) -> list[WgmmaConfig]:
    """Return configs of several GEMMs in one launch, the fastest first.

    Of those whose times are taken as equal, the one with the largest tile comes first: it was the
    fastest for the six mixtures of experts that were measured on an H200.
    """
    times = {config: estimate_grouped(problems, config, gpu) for config in configs}
    near = _NEAR_GROUPED * min(times.values())
    return sorted(
        times,
        key=lambda c: (0, -prod(c.tile[:2]), -c.stages) if times[c] <= near else (1, times[c], 0),
    )


# ------------------------------------------------------------------------------- estimates
def estimate(problem: Problem, config: WgmmaConfig, gpu: GpuSpec) -> WgmmaEstimate:
    """Return the estimate of a config.

    Args:
        problem: the GEMM that is multiplied: the transpose if the config swaps A and B.
        config: the config.
        gpu: a card with a model of `wgmma`.
    """
    model = _model(gpu)
    m, n, _ = config.tile
    size, iterations = ELEMENT_BYTES[problem.dtype], config.k_slice_iterations(problem)
    ctas = config.work_items(problem)
    places = (
        gpu.multiprocessors * model.cluster_placement[prod(config.cluster) * config.column_slices]
    )
    waves = ceil(ctas / places)
    read = _bytes_per_iteration(problem, config, model)
    operands = (problem.m + problem.n) * problem.k * size * problem.batch
    iteration = _iteration(problem, config, min(ctas, places), operands, model)
    store = m * n * ELEMENT_BYTES[problem.out] / 2 * model.store_us
    exposed = 0.0 if config.overlap_epilogue else store
    wave = iterations * max(iteration.values()) + exposed
    time = waves * wave + (store if config.overlap_epilogue else 0.0) + model.launch_us
    if config.sums_through_l2:
        time += slice_sums_us(config, min(ctas, places))
    elif config.split_k > 1:
        time += model.split_k_us
    elif prod(config.cluster) > 1:
        time += model.cluster_us
    if not config.persistent_ctas:
        time += model.next_wave_us * (waves - 1)
    operations = 2 * ctas / config.split_k * m * n * problem.k * size / 2
    power = operations * model.power_us_per_flop
    power += ctas * iterations * read * model.power_us_per_l2_byte
    power += ctas * exposed / gpu.multiprocessors * model.power_store_share
    written = problem.m * problem.n * ELEMENT_BYTES[problem.out] * problem.batch
    memory = (operands + written) / model.memory_bytes_per_us + model.launch_us
    longest = max(time, power, memory)
    limit = "power" if power == longest else "memory" if memory == longest else None
    limit = limit or max(iteration, key=lambda name: iteration[name])
    return WgmmaEstimate(config, longest, power, limit)


def slice_sums_us(config: WgmmaConfig, ctas: float) -> float:
    """Return the microseconds that adding up slices through the L2 cache takes.

    All CTAs add their accumulators at the same time; then the last one of each tile loads the sums,
    and if they are added in order, those of each slice one after another. The constants are to be
    fitted: a probe took 5 µs with sums of 64 KB in each CTA, 8 µs with 128 KB, on an H200.

    Args:
        config: the config.
        ctas: CTAs that run at the same time.
    """
    size = prod(config.tile[:2]) * ELEMENT_BYTES["f32"]
    loaded = config.split_k if config.deterministic else 1
    added = _ADD_US_PER_BYTE * size * ctas
    return _ARRIVAL_US + added + _LOAD_US_PER_BYTE * size * loaded


def estimate_grouped(problems: Sequence[Problem], config: WgmmaConfig, gpu: GpuSpec) -> float:
    """Return the microseconds of several GEMMs in one launch: waves of average tiles.

    Args:
        problems: the GEMMs.
        config: the config of all of them, without clusters and split-K.
        gpu: a card with a model of `wgmma`.
    """
    model = _model(gpu)
    m, n, _ = config.tile
    ctas = sum(config.work_items(p) for p in problems)
    size, out = ELEMENT_BYTES[problems[0].dtype], ELEMENT_BYTES[problems[0].out]
    operands = sum((p.m + p.n) * p.k * size for p in problems)
    written = sum(p.m * p.n * out for p in problems)
    busy = min(ctas, gpu.multiprocessors)
    store = m * n * out / 2 * model.store_us
    work = sum(
        config.work_items(p)
        * (
            config.k_iterations(p) * max(_iteration(p, config, busy, operands, model).values())
            + store
        )
        for p in problems
    )
    waves = ceil(ctas / gpu.multiprocessors)
    memory = (operands + written) / model.memory_bytes_per_us
    return max(waves * work / ctas, memory) + model.launch_us


def _model(gpu: GpuSpec) -> WgmmaModel:
    if gpu.wgmma_model is None:
        raise LegoError(f"there is no cost model of wgmma for {gpu.name}")
    return gpu.wgmma_model


def _iteration(
    problem: Problem, config: WgmmaConfig, ctas: float, operands: float, model: WgmmaModel
) -> dict[str, float]:
    """Return the microseconds of a K-loop iteration by resource.

    Args:
        problem: the GEMM.
        config: its config.
        ctas: CTAs that run at the same time.
        operands: bytes of all operands.
        model: the constants.
    """
    m, n, k = config.tile
    is_cached = operands < model.l2_operand_bytes
    cache = model.l2_hit_bytes_per_us if is_cached else model.l2_miss_bytes_per_us
    is_small = config.consumers == 1 and prod(config.cluster) > 1
    latency = model.cluster_copy_us if is_small else model.copy_us
    size = ELEMENT_BYTES[problem.dtype]
    return {
        "tensor cores": m * n * k * size / model.flops_per_us,  # twice as many on 8-bit elements
        "cache": _bytes_per_iteration(problem, config, model) * ctas / cache,
        "latency": latency / config.stages,
    }


def _bytes_per_iteration(problem: Problem, config: WgmmaConfig, model: WgmmaModel) -> float:
    """Return the bytes that a CTA reads from the L2 cache in one iteration."""
    m, n, k = config.tile
    down, across = config.cluster
    row = n * ELEMENT_BYTES[problem.dtype]
    is_unaligned = problem.b == "row" and row > _ROW_BYTES and row % _ROW_BYTES
    columns = n * (model.unaligned_rows if is_unaligned else 1.0)
    return (m / across + columns / down) * k * ELEMENT_BYTES[problem.dtype]


# ----------------------------------------------------------------------------- enumeration
def enumerate_configs(problem: Problem, target: Target) -> Iterator[WgmmaConfig]:
    """Yield the configs that fit a GEMM with a row-major C and a target."""
    # Only 2-byte elements can be stored transposed.
    for swap_ab in (False, True) if ELEMENT_BYTES[problem.out] == 2 else (False,):
        multiplied = problem.transpose if swap_ab else problem
        for config in _shapes(multiplied, target, spec_of(target)):
            candidate = replace(config, swap_ab=swap_ab)
            if fits(candidate, lambda c, p=multiplied: c.check(p, target.optin_shared_bytes)):  # type: ignore[misc]
                yield candidate


def _multiplied(problem: Problem, config: GemmConfig) -> Problem:
    """Return the GEMM that a config multiplies: the transpose if it swaps A and B."""
    return problem.transpose if config.is_swapped else problem


def _shapes(problem: Problem, target: Target, gpu: GpuSpec) -> Iterator[WgmmaConfig]:
    k = _ROW_BYTES // ELEMENT_BYTES[problem.dtype]
    tiles = [(64, n, 1) for n in _NARROW] + [(m, n, 2) for m, n in _WIDE]
    for m, n, consumers in tiles:
        # A tile of twice the matrix is no use, except for the smallest matrix.
        if (m > WGMMA_ROWS and m >= 2 * problem.m) or (n > _NARROW[0] and n >= 2 * problem.n):
            continue
        plain = WgmmaConfig((m, n, k), consumers, _MAX_STAGES)
        ctas = prod(plain.tiles(problem)) * problem.batch
        if consumers == 1:
            # CTAs of a single wave exit early, and those of the next launch start in their place.
            plain = replace(plain, one_cta_per_sm=ctas <= gpu.multiprocessors)
        elif ctas > gpu.multiprocessors:
            if n < _MIN_WAVES_COLUMNS:
                continue
            plain = replace(plain, persistent_ctas=gpu.multiprocessors)
        for split_k in (2, 4, 8):
            split = replace(plain, persistent_ctas=0, split_k=split_k)
            if split_k * ctas <= gpu.multiprocessors and n % (_NARROW[0] * split_k) == 0:
                yield replace(split, stages=_stages(problem, split, target))
        # Small tiles gain by sharing A; sharing B was slower than no cluster.
        for cluster in ((1, 1), (1, 2)) if consumers == 1 else ((1, 1), (2, 1), (1, 2)):
            config = replace(plain, cluster=cluster)
            stages = _stages(problem, config, target)
            if stages >= 2:
                config = replace(config, stages=stages)
                yield replace(config, overlap_epilogue=_can_overlap(problem, config))


def _stages(problem: Problem, config: WgmmaConfig, target: Target) -> int:
    """Return the most stages that fit; if a CTA has one tile, not more than its iterations."""
    shared_bytes = config.shared_bytes(problem)
    stage_bytes = sum(config.tile[:2]) * _ROW_BYTES
    most = config.stages + (target.optin_shared_bytes - shared_bytes) // stage_bytes
    if not config.persistent_ctas:
        most = min(most, max(2, config.k_iterations(problem)))
    return min(most, _MAX_STAGES)


def _can_overlap(problem: Problem, config: WgmmaConfig) -> bool:
    """Return whether the epilogue of a tile can overlap the main loop of the next one."""
    accumulators = prod(config.tile[:2]) // config.threads
    return (
        config.persistent_ctas > 0
        and ELEMENT_BYTES[problem.out] == 2
        and accumulators + accumulators // 2 <= _MAX_REGISTERS
        and config.epilogue_tiles(problem) <= config.k_iterations(problem)
    )
