"""Many `wgmma` configs as a table of numbers, and what follows from its columns."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lego_mlir.analysis.shared_tiles import SWIZZLES
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import (
    KIB,
    MAX_ACCESS_BYTES,
    RESERVED_SHARED_BYTES,
    SM_REGISTERS,
    WARPGROUP_THREADS,
    WGMMA_ROWS,
)
from lego_mlir.kernels.gemm.epilogue_tiles import EPILOGUE_TILES, epilogue_columns
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

Numbers = npt.NDArray[np.float64]

_BARRIER_BYTES = 1024
"""Shared memory for barriers, and for aligning what follows them, as in `WgmmaConfig`."""


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """Configs as columns of numbers; a row is a config, and its fields are `WgmmaConfig`'s.

    Attributes:
        k_bytes: bytes of k in a tile; all other columns are fields of the config.
    """

    m: Numbers
    n: Numbers
    k_bytes: Numbers
    consumers: Numbers
    stages: Numbers
    down: Numbers
    across: Numbers
    persistent_ctas: Numbers
    overlap: Numbers
    alone: Numbers
    swap: Numbers
    split_k: Numbers
    through_l2: Numbers
    deterministic: Numbers
    ping_pong: Numbers

    @staticmethod
    def of(configs: Iterable[WgmmaConfig], element_bytes: int) -> ConfigTable:
        """Return the table of configs for elements of A and B of that many bytes."""
        rows = [
            (
                *c.tile[:2],
                c.tile[2] * element_bytes,
                c.consumers,
                c.stages,
                *c.cluster,
                c.persistent_ctas,
                c.overlap_epilogue,
                c.one_cta_per_sm,
                c.swap_ab,
                c.split_k,
                c.sums_through_l2,
                c.sums_through_l2 and c.deterministic,
                c.ping_pong,
            )
            for c in configs
        ]
        columns = np.array(rows, float).reshape(-1, len(fields(ConfigTable))).T
        return ConfigTable(*columns)

    def __len__(self) -> int:
        return len(self.m)

    @property
    def split_in_cluster(self) -> Numbers:
        """The split-K slices whose CTAs form a cluster; 1 if they add up through the L2 cache."""
        return np.where(self.through_l2 > 0, 1.0, self.split_k)

    def take(self, rows: Any) -> ConfigTable:
        """Return some rows, by a mask or by their numbers."""
        return ConfigTable(*(getattr(self, f.name)[rows] for f in fields(self)))

    def replaced(self, **columns: Any) -> ConfigTable:
        """Return the table with other columns; a number stands in all rows."""
        ones = np.ones(len(self))
        old = {f.name: getattr(self, f.name) for f in fields(self)}
        return ConfigTable(**{**old, **{name: x * ones for name, x in columns.items()}})

    @staticmethod
    def joined(tables: Sequence[ConfigTable]) -> ConfigTable:
        """Return the rows of all tables, one behind the other."""
        names = [f.name for f in fields(ConfigTable)]
        return ConfigTable(*(np.concatenate([getattr(t, n) for t in tables]) for n in names))


def tiles_of(problem: Problem, table: ConfigTable) -> tuple[Numbers, Numbers]:
    """Return the tiles of C down and across, filled up to whole clusters."""
    swap = table.swap > 0
    rows, columns = np.where(swap, problem.n, problem.m), np.where(swap, problem.m, problem.n)
    down = np.ceil(np.ceil(rows / table.m) / table.down) * table.down
    across = np.ceil(np.ceil(columns / table.n) / table.across) * table.across
    return down, across


def stores_rows(problem: Problem, table: ConfigTable) -> npt.NDArray[np.bool_]:
    """Return whether a warp stores 256 bytes of a row of C, if threads do."""
    columns = table.n / table.split_in_cluster
    is_wide = columns * ELEMENT_BYTES[problem.out] % (EPILOGUE_TILES * SWIZZLES[0]) == 0
    found: npt.NDArray[np.bool_] = is_wide & (table.swap == 0)
    return found


@functools.cache
def epilogue_widths(out_bytes: int) -> npt.NDArray[np.int64]:
    """Return the columns of an epilogue tile by the columns that a CTA stores."""
    widths = np.full(257, 8)
    for columns in range(8, 257, 8):
        try:
            widths[columns] = epilogue_columns(columns, out_bytes)
        except LegoError:
            continue
    return widths


def ctas_per_sm(problem: Problem, table: ConfigTable) -> Numbers:
    """Return the CTAs that a multiprocessor holds, by its shared memory and its registers."""
    t = table
    shared = shared_bytes_of(problem, table) + RESERVED_SHARED_BYTES
    by_shared = np.floor(228 * KIB / shared)
    registers = np.where(t.consumers == 1, np.maximum(64, t.n / 2 + 56), 168)
    by_registers = np.floor(SM_REGISTERS / (registers * WARPGROUP_THREADS * (t.consumers + 1)))
    ctas: Numbers = np.maximum(1, np.minimum(by_shared, by_registers))
    return ctas


def shared_bytes_of(
    problem: Problem, table: ConfigTable, *, stores_by_threads: bool = False
) -> Numbers:
    """Return the shared memory of a CTA of each config, at most; see `WgmmaConfig.shared_bytes`.

    Threads that store C bring whole tiles of it to rows, those of both consumers of a ping-pong.
    Of persistent CTAs this memory lies beside the ring buffer, which is filled meanwhile. Of others
    a half of the tile does, if not all of it has room there.

    Args:
        problem: the GEMM.
        table: the configs.
        stores_by_threads: whether threads store C, and not TMA.
    """
    t, out = table, ELEMENT_BYTES[problem.out]
    ring = t.stages * (t.m + t.n) * t.k_bytes
    columns = (t.n / t.split_in_cluster).astype(int)
    by_row = epilogue_widths(out)[columns]
    by_column = _swapped_widths()[columns]
    row = np.where(t.swap > 0, by_column, by_row) * out
    epilogue = t.consumers * EPILOGUE_TILES * WGMMA_ROWS * row
    if stores_by_threads:
        padding = MAX_ACCESS_BYTES * np.maximum(t.m, t.n)
        tiles = (1 + t.ping_pong) * (t.m * t.n * out + padding)
        halves = np.maximum(epilogue, t.m * t.n * out / 2 + padding)
        epilogue = np.where(t.persistent_ctas > 0, tiles, halves)
    accumulators = (t.split_in_cluster - 1) * t.m * columns * ELEMENT_BYTES["f32"]
    total: Numbers = ring + epilogue + accumulators + _BARRIER_BYTES
    return total


@functools.cache
def _swapped_widths() -> npt.NDArray[np.int64]:
    """Return what `epilogue_widths` does for 2-byte elements that are stored transposed."""
    widths = np.full(257, 8)
    for columns in range(8, 257, 8):
        widths[columns] = epilogue_columns(columns, 2, by_row=False)
    return widths
