"""The `wgmma` configs that are considered for a GEMM, as a table: `model` ranks them.

Tiles have 64 rows for each consumer warpgroup, or 128 for two of them, and columns in steps that
are fine where that changes the number of waves. Clusters share the tiles of A, of B or of both.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from math import sqrt

import numpy as np

from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import (
    CACHE_LINE_BYTES,
    MMA_COLUMNS,
    PORTABLE_CLUSTER_CTAS,
    RESERVED_SHARED_BYTES,
    WARPGROUP_THREADS,
    WGMMA_K_BYTES,
    WGMMA_ROWS,
)
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, shared_bytes_of, tiles_of
from lego_mlir.kernels.gemm.wgmma.registers import MAX_RESULT_REGISTERS
from lego_mlir.kernels.gemm.wgmma.work import model_of

_TILES = (
    *((64, n, 1) for n in (8, 16, 24, 32, 40, 48, *range(64, 257, 16))),
    *((128, n, 1) for n in (16, 32, 48, 64, 96, 128)),
    *((128, n, 2) for n in (8, 16, 32, 48, *range(64, 257, 16))),
    *((192, n, 3) for n in (16, 32, 48, *range(64, 193, 16))),
    *((256, n, 2) for n in (16, 32, 48, *range(64, 193, 16))),
)
"""Rows and columns of a tile, and its consumer warpgroups."""

_NARROWEST, _ATOM_ROWS = 16, 8

_CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2))
_SPLITS = range(2, PORTABLE_CLUSTER_CTAS + 1)

_MAX_STAGES, _FEW_STAGES = 8, 4
"""Stages of a CTA, at most, and those with which more CTAs lie side by side."""

_MAX_SPLIT_CTAS_PER_SM = 2
"""Split-K slices for each multiprocessor, at most: more of them only add to what is reduced."""

_SINGLE, _WAVES, _PERSISTENT, _OVERLAPPED, _PING_PONG, _L2_SLICES, _L2_PAIRS = range(7)
"""How the tiles are computed: all at the same time, by one CTA each in waves, by persistent CTAs,
by such whose epilogue is overlapped or whose consumers take turns, by slices of k that are added up
through the L2 cache, and by so many slices that a multiprocessor has two."""

_PING_PONG_TILES = (*((64, n) for n in range(64, 257, 32)), *((128, n) for n in range(64, 193, 32)))
_FEW_CLUSTERS = ((1, 1), (2, 1), (1, 2))


@functools.cache
def _templates() -> tuple[ConfigTable, np.ndarray]:
    """Return configs of every tile, cluster, split and order of operands, and how each computes."""
    configs, modes = [], []
    for swap in (False, True):
        for m, n, consumers in _TILES:
            for config, mode in _variants((m, n, 64), consumers, swap):
                configs.append(config)
                modes.append(mode)
        for m, n in _PING_PONG_TILES:
            for cluster in _FEW_CLUSTERS:
                configs.append(
                    WgmmaConfig((m, n, 64), 2, _MAX_STAGES, cluster, swap_ab=swap, ping_pong=True)
                )
                modes.append(_PING_PONG)
    return ConfigTable.of(configs, 2), np.array(modes)


def _variants(
    tile: tuple[int, int, int], consumers: int, swap: bool
) -> Iterator[tuple[WgmmaConfig, int]]:
    """Yield the clusters, splits and ways to compute of a tile."""
    # Thousands are made in every process, and `dataclasses.replace` takes twice as long.
    config = functools.partial(WgmmaConfig, tile, consumers, swap_ab=swap)
    for cluster in _CLUSTERS:
        plain = config(_MAX_STAGES, cluster)
        for mode in (_SINGLE, _WAVES, _PERSISTENT):
            yield plain, mode
        yield config(_MAX_STAGES, cluster, overlap_epilogue=True), _OVERLAPPED
    if consumers == 1:
        yield config(_FEW_STAGES), _WAVES
    for split_k in _SPLITS:
        if tile[1] % (MMA_COLUMNS * split_k) == 0:
            yield config(_MAX_STAGES, split_k=split_k), _SINGLE
    for cluster in _FEW_CLUSTERS:  # the number of slices follows from the tiles
        for deterministic in (False, True):
            sliced = config(
                _MAX_STAGES, cluster, split_k=2, split_k_through="l2", deterministic=deterministic
            )
            yield sliced, _L2_SLICES
    if consumers == 1:
        yield config(_MAX_STAGES, split_k=2, split_k_through="l2"), _L2_PAIRS


def candidates(
    problem: Problem,
    target: Target,
    gpu: GpuSpec,
    *,
    stores_by_threads: bool = False,
    copies_by_threads: bool = False,
) -> ConfigTable:
    """Return the configs that may fit a GEMM with a row-major C and a target.

    `WgmmaConfig.check` has the last word on each.

    Args:
        problem: the GEMM.
        target: the GPU architecture.
        gpu: a card with a model of `wgmma`.
        stores_by_threads: whether threads store C, and not TMA.
        copies_by_threads: whether threads may copy tiles of A or B. A CTA waits for some of these
            copies, so that two of them on a multiprocessor are better than one.
    """
    model = model_of(gpu)
    t, modes = _templates()
    if not copies_by_threads:
        t, modes = t.take(modes != _L2_PAIRS), modes[modes != _L2_PAIRS]
    k_bytes = _k_bytes(problem)
    t = t.replaced(k_bytes=k_bytes)
    out = ELEMENT_BYTES[problem.out]
    steps = -(-problem.k * ELEMENT_BYTES[problem.dtype] // k_bytes)
    swap = t.swap > 0
    rows, columns = np.where(swap, problem.n, problem.m), np.where(swap, problem.m, problem.n)
    # A tile of twice the matrix is no use, except for the smallest matrix.
    useful = ((t.m == WGMMA_ROWS) | (t.m < 2 * rows)) & ((t.n <= _NARROWEST) | (t.n < 2 * columns))
    useful &= np.ceil(rows / t.m) >= t.down
    useful &= np.ceil(columns / t.n) >= t.across
    # A CTA loads its share of a tile that a cluster shares by whole swizzle atoms of eight rows.
    useful &= (t.n % (_ATOM_ROWS * t.down) == 0) & (t.m % (_ATOM_ROWS * t.across) == 0)
    if out != 2:  # only 2-byte elements can be stored transposed
        useful &= ~swap
    down, across = tiles_of(problem, t)
    tiles = down * across * problem.batch
    members = t.down * t.across * t.split_in_cluster
    placed = np.interp(
        members, list(model.cluster_placement), list(model.cluster_placement.values())
    )
    room = np.floor(gpu.multiprocessors * placed / members) * members
    is_pair = modes == _L2_PAIRS
    is_added = (modes == _L2_SLICES) | is_pair
    slices = np.maximum(1, np.minimum(np.floor(room * (1 + is_pair) / tiles), steps // 2))
    slices = np.ceil(steps / np.ceil(steps / slices))  # none is empty
    t = t.replaced(split_k=np.where(is_added, slices, t.split_k))
    useful &= ~is_added | (slices >= 2)
    ctas = tiles * t.split_k
    has_waves = ctas > room
    useful &= ~is_pair | has_waves
    is_single = (modes == _SINGLE) | is_added
    useful &= np.where(t.split_k > 1, ctas <= _MAX_SPLIT_CTAS_PER_SM * room, True)
    useful &= np.where(is_single & (t.split_k == 1), ~has_waves, True)
    useful &= np.where(is_single, True, has_waves)
    # With few steps there is nothing to overlap.
    accumulators = t.m * t.n / (WARPGROUP_THREADS * t.consumers)
    most = np.array([0, *MAX_RESULT_REGISTERS.values()])[t.consumers.astype(int)]
    is_overlapped = modes == _OVERLAPPED
    useful &= ~is_overlapped | ((accumulators * 1.5 <= most) & (out == 2))
    each = np.ceil(steps / np.maximum(t.split_k, 1))
    useful &= (t.split_k == 1) | (each * (t.split_k - 1) < steps)
    t, modes = t.take(useful), modes[useful]
    room, ctas = room[useful], ctas[useful]
    is_persistent = np.isin(modes, (_PERSISTENT, _OVERLAPPED, _PING_PONG))
    is_alone = np.isin(modes, (_SINGLE, _L2_SLICES)) & (t.consumers == 1) & (ctas <= room)
    t = t.replaced(persistent_ctas=np.where(is_persistent, room, 0), alone=is_alone)
    fixed = shared_bytes_of(problem, t.replaced(stages=0), stores_by_threads=stores_by_threads)
    each = np.where(
        modes == _L2_PAIRS,
        gpu.sm_shared_bytes // 2 - RESERVED_SHARED_BYTES,
        target.optin_shared_bytes,
    )
    stages = np.floor((each - fixed) / ((t.m + t.n) * k_bytes))
    own = np.where(is_persistent, _MAX_STAGES, max(2, steps))
    stages = np.minimum(np.minimum(stages, t.stages), own)
    t = t.replaced(stages=stages)
    return t.take(stages >= 2)


def _k_bytes(problem: Problem) -> int:
    """Return the bytes of k of a tile: a line, or for a short k the narrowest box that holds it.

    TMA takes its time to fill with zeros what is outside of a row.
    """
    needed = problem.k * ELEMENT_BYTES[problem.dtype]
    return next(
        (n for n in (WGMMA_K_BYTES, CACHE_LINE_BYTES // 2) if needed <= n), CACHE_LINE_BYTES
    )


def config_of(table: ConfigTable, row: int, problem: Problem, raster_group: int) -> WgmmaConfig:
    """Return a row of a table as a config.

    Args:
        table: the table.
        row: its row.
        problem: the GEMM, for the element type.
        raster_group: the config's raster group.
    """
    t = table
    k = int(t.k_bytes[row]) // ELEMENT_BYTES[problem.dtype]
    return WgmmaConfig(
        (int(t.m[row]), int(t.n[row]), k),
        int(t.consumers[row]),
        int(t.stages[row]),
        (int(t.down[row]), int(t.across[row])),
        raster_group,
        int(t.persistent_ctas[row]),
        bool(t.overlap[row]),
        bool(t.alone[row]),
        bool(t.swap[row]),
        split_k=int(t.split_k[row]),
        split_k_through="l2" if t.through_l2[row] else "cluster",
        deterministic=bool(t.deterministic[row]),
        ping_pong=bool(t.ping_pong[row]),
    )


def raster_group_of(m: int, n: int, ctas: int) -> int:
    """Return the height of a raster group for which the CTAs that run together read the least.

    `ctas` tiles of m×n that lie in g rows and ctas / g columns read g m + ctas / g n rows of A and
    columns of B, which is least for g = √(ctas n / m).
    """
    return max(1, round(sqrt(ctas * n / m)))
