"""Which division of a product takes least time on Hopper, by a model fitted to measurements.

A block takes one tile of C after another, in waves of as many blocks as there are multiprocessors.
A step over k takes as long as the slowest of

- the tensor cores,
- the second-level cache, from which all blocks at once read their tiles; what a cluster fetches
  together it reads once,
- memory's latency, divided by the tiles that are on their way.

Behind its last step a tile is stored, unless the next one is multiplied meanwhile. Long runs are
bound by power: then what counts are the operations, those on tiles' empty parts included, and the
bytes from the cache. No product is faster than device memory moves its matrices.

The constants were fitted to about 300 timings of products of f16 on an NVIDIA H200 (15 shapes, 20
divisions each, kernels run back to back, so at the clock that their power allows). The model is for
ranking: its times are up to a quarter off; what it picked was at most 2 % slower than the best that
was measured, 3 % for the smallest product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import GpuSpec, spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.problem import BYTES, Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma_shared_layouts import ROWS

_TENSOR = 4.184e6
"""Floating-point operations a microsecond of a multiprocessor, on elements of 16 bits."""

_CACHE, _CACHE_MISSING = 10.49e6, 9.159e6
"""Bytes a microsecond from the second-level cache, for factors that fit it and that do not."""

_CACHED = 100e6
"""Bytes of the factors that fit it."""

_STRADDLING = 1.571
"""How much longer tiles of B take whose rows are no multiples of 128 bytes."""

_LATENCY, _LATENCY_TOGETHER = 0.7302, 1.07
"""Microseconds from a copy's start to its end; of small tiles that blocks fetch together, to where
a slot is free again in all of them: 64×32 with a cluster of two and 8 stages took 0.134 a step."""

_STORE = 7.543e-5
"""Microseconds to store an element of C of 16 bits."""

_START = 2.0
"""Microseconds of a launch, from the first block's start to the last one's end."""

_NEW_BLOCKS = 2.447
"""Microseconds from a wave to the next where blocks do not stay."""

_POWER_OPERATION, _POWER_BYTE = 1.896e-9, 3.449e-10
"""Microseconds that power allows on average, for an operation and for a byte from the cache."""

_POWER_STORE = 0.188
"""The part of the time for stores that is added to those."""

_MEMORY = 4.3e6
"""Bytes a microsecond of device memory."""

_AT_ONCE = {1: 1.0, 2: 1.0, 4: 0.91, 8: 0.73}
"""By blocks of a cluster, the part of the multiprocessors that whole clusters find room on."""

_CLUSTER = 0.05
"""Microseconds by which a launch takes longer where blocks of a cluster wait for each other."""

_PARTS = 2.863
"""Microseconds in which blocks that share a tile add up their sums."""

_NEAR = 1.02
"""Estimates that differ less than this are alike."""

_NEAR_TOGETHER = 1.07
"""The same of several products in one launch, of which less is known."""

_NARROW = (16, 32, 64, 128, 256)
_WIDE = ((128, 64), (128, 128), (128, 192), (128, 256), (256, 128))
"""Columns of tiles of 64 rows, and rows and columns of those that two warpgroups share."""

_BUSY = 128
"""Columns of a tile at least that keep the tensor cores busy wave after wave."""

_ROW = 128
"""Bytes of k in a tile: a row of the widest swizzle."""

_MOST_STAGES = 8
_REGISTERS = 192
"""Of a thread, for sums and for a result that is stored later."""


@dataclass(frozen=True, slots=True)
class WgmmaEstimate:
    """What a product would take, divided one way.

    Attributes:
        config: the division.
        microseconds: in all.
        power: microseconds that it would take if power were the only limit.
        limit: what takes longest: `tensor cores`, `cache`, `latency`, `power` or `memory`.
    """

    config: WgmmaConfig
    microseconds: float
    power: float
    limit: str

    def __str__(self) -> str:
        return f"{self.microseconds:8.1f} µs  {self.config}, by {self.limit}"


def estimates(problem: Problem, target: Target) -> list[WgmmaEstimate]:
    """What a product would take, divided every way that there is; the fastest first.

    Args:
        problem: the product, with a row-major C.
        target: what it is divided for.
    """
    gpu = spec_of(target)
    found = [
        estimate(problem.transpose if config.swap_ab else problem, config, gpu)
        for config in _configs(problem, target, gpu)
    ]
    found.sort(key=lambda e: e.microseconds)
    count = sum(e.microseconds <= _NEAR * found[0].microseconds for e in found)
    return sorted(found[:count], key=_preference) + found[count:]


def _preference(found: WgmmaEstimate) -> tuple[float, ...]:
    """Orders estimates that are alike.

    Large tiles stored while the next is multiplied held up best at the clocks of a cool GPU too,
    where the model was not fitted; and clusters, where factors do not fit the cache. Of small tiles
    those of one warpgroup were faster.
    """
    config = found.config
    size = prod(config.tile[:2]) if config.overlap_epilogue else 0
    is_alone = not (config.overlap_epilogue and max(config.cluster) > 1)
    return -size, is_alone, found.microseconds, config.consumers, found.power, config.swap_ab


def estimate(problem: Problem, config: WgmmaConfig, gpu: GpuSpec) -> WgmmaEstimate:
    """What a product would take, divided in this way.

    Args:
        problem: the product that is multiplied: the transpose where the config swaps.
        config: the division.
        gpu: the GPU.
    """
    m, n, _ = config.tile
    size, steps = BYTES[problem.dtype], config.steps_of_part(problem)
    blocks = config.count(problem)
    room = gpu.multiprocessors * _AT_ONCE[prod(config.cluster) * config.split_k]
    waves = ceil(blocks / room)
    read = _bytes_a_step(problem, config)
    factors = (problem.m + problem.n) * problem.k * size * problem.batch
    step = _step(problem, config, min(blocks, room), factors)
    store = m * n * BYTES[problem.out] / 2 * _STORE
    exposed = 0.0 if config.overlap_epilogue else store
    wave = steps * max(step.values()) + exposed
    time = waves * wave + (store if config.overlap_epilogue else 0.0) + _START
    if config.split_k > 1:
        time += _PARTS
    elif prod(config.cluster) > 1:
        time += _CLUSTER
    if not config.persistent_ctas:
        time += _NEW_BLOCKS * (waves - 1)
    operations = 2 * blocks / config.split_k * m * n * problem.k * size / 2
    power = operations * _POWER_OPERATION + blocks * steps * read * _POWER_BYTE
    power += blocks * exposed / gpu.multiprocessors * _POWER_STORE
    written = problem.m * problem.n * BYTES[problem.out] * problem.batch
    memory = (factors + written) / _MEMORY + _START
    longest = max(time, power, memory)
    limit = "power" if power == longest else "memory" if memory == longest else None
    return WgmmaEstimate(config, longest, power, limit or max(step, key=lambda name: step[name]))


def estimate_together(problems: Sequence[Problem], config: WgmmaConfig, gpu: GpuSpec) -> float:
    """Microseconds of several products in one launch: waves of tiles that take what tiles average.

    Args:
        problems: the products.
        config: how all of them are divided, without clusters or parts.
        gpu: the GPU.
    """
    m, n, _ = config.tile
    blocks = sum(config.count(p) for p in problems)
    size, out = BYTES[problems[0].dtype], BYTES[problems[0].out]
    factors = sum((p.m + p.n) * p.k * size for p in problems)
    written = sum(p.m * p.n * out for p in problems)
    busy = min(blocks, gpu.multiprocessors)
    store = m * n * out / 2 * _STORE
    work = sum(
        config.count(p) * (config.steps(p) * max(_step(p, config, busy, factors).values()) + store)
        for p in problems
    )
    waves = ceil(blocks / gpu.multiprocessors)
    return max(waves * work / blocks, (factors + written) / _MEMORY) + _START


def ordered_together(
    configs: Sequence[WgmmaConfig], problems: Sequence[Problem], gpu: GpuSpec
) -> list[WgmmaConfig]:
    """Divisions of several products, those first that take least time.

    Of those that are alike the one with the largest tile comes first: of six mixtures of experts
    that were measured on an H200 that is the fastest.
    """
    times = {config: estimate_together(problems, config, gpu) for config in configs}
    near = _NEAR_TOGETHER * min(times.values())
    return sorted(
        times,
        key=lambda c: (0, -prod(c.tile[:2]), -c.stages) if times[c] <= near else (1, times[c], 0),
    )


def _step(problem: Problem, config: WgmmaConfig, busy: float, factors: float) -> dict[str, float]:
    """Microseconds of a step over k, by what it waits for.

    Args:
        problem: whose step.
        config: the division.
        busy: blocks at work at the same time.
        factors: bytes of all that is multiplied.
    """
    m, n, k = config.tile
    cache = _CACHE if factors < _CACHED else _CACHE_MISSING
    is_small = config.consumers == 1 and prod(config.cluster) > 1
    latency = _LATENCY_TOGETHER if is_small else _LATENCY
    return {
        "tensor cores": m * n * k * BYTES[problem.dtype] / _TENSOR,  # on 8 bits twice as many
        "cache": _bytes_a_step(problem, config) * busy / cache,
        "latency": latency / config.stages,
    }


def _bytes_a_step(problem: Problem, config: WgmmaConfig) -> float:
    """Bytes from the second-level cache that a block fetches for one step over k."""
    m, n, k = config.tile
    down, across = config.cluster
    row = n * BYTES[problem.dtype]
    straddles = problem.b == "row" and row > _ROW and row % _ROW
    columns = n * (_STRADDLING if straddles else 1.0)
    return (m / across + columns / down) * k * BYTES[problem.dtype]


def _configs(problem: Problem, target: Target, gpu: GpuSpec) -> Iterator[WgmmaConfig]:
    """The divisions that fit the product and the target."""
    # Only elements of two bytes can be stored transposed.
    for swap_ab in (False, True) if BYTES[problem.out] == 2 else (False,):
        multiplied = problem.transpose if swap_ab else problem
        for config in _shapes(multiplied, target, gpu):
            candidate = replace(config, swap_ab=swap_ab)
            try:
                candidate.check(multiplied, target.optin_shared_bytes)
            except LegoError:
                continue
            yield candidate


def _shapes(problem: Problem, target: Target, gpu: GpuSpec) -> Iterator[WgmmaConfig]:
    k = _ROW // BYTES[problem.dtype]
    tiles = [(64, n, 1) for n in _NARROW] + [(m, n, 2) for m, n in _WIDE]
    for m, n, consumers in tiles:
        # A tile of twice the matrix is no use, but for the least.
        if (m > ROWS and m >= 2 * problem.m) or (n > _NARROW[0] and n >= 2 * problem.n):
            continue
        plain = WgmmaConfig((m, n, k), consumers, _MOST_STAGES)
        blocks = prod(plain.tiles(problem)) * problem.batch
        if consumers == 1:
            # Blocks of one wave, which leave early: the next launch's take their place.
            plain = replace(plain, one_cta_per_sm=blocks <= gpu.multiprocessors)
        elif blocks > gpu.multiprocessors:
            if n < _BUSY:
                continue
            plain = replace(plain, persistent_ctas=gpu.multiprocessors)
        for split_k in (2, 4, 8):
            shared = replace(plain, persistent_ctas=0, split_k=split_k)
            if split_k * blocks <= gpu.multiprocessors and n % (_NARROW[0] * split_k) == 0:
                yield replace(shared, stages=_stages(problem, shared, target))
        # Small tiles gain by a common A; by a common B they were slower than alone.
        for cluster in ((1, 1), (1, 2)) if consumers == 1 else ((1, 1), (2, 1), (1, 2)):
            config = replace(plain, cluster=cluster)
            stages = _stages(problem, config, target)
            if stages >= 2:
                config = replace(config, stages=stages)
                yield replace(config, overlap_epilogue=_can_defer(problem, config))


def _stages(problem: Problem, config: WgmmaConfig, target: Target) -> int:
    """As many as there is room for; no more than steps where a block has one tile."""
    some = config.shared_bytes(problem)
    slot = sum(config.tile[:2]) * _ROW
    most = config.stages + (target.optin_shared_bytes - some) // slot
    if not config.persistent_ctas:
        most = min(most, max(2, config.steps(problem)))
    return min(most, _MOST_STAGES)


def _can_defer(problem: Problem, config: WgmmaConfig) -> bool:
    """Whether a result can be stored while the next tile is multiplied."""
    sums = prod(config.tile[:2]) // config.threads
    return (
        config.persistent_ctas > 0
        and BYTES[problem.out] == 2
        and sums + sums // 2 <= _REGISTERS
        and config.chunks(problem) <= config.steps(problem)
    )
