"""The features of `mma.sync` configs; see `correction`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lego_mlir.kernels.gemm.corrections.correction import Features, Numbers, log2
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.mma.model import Work
from lego_mlir.kernels.gemm.problem import Problem


def features_of(
    problem: Problem, configs: Sequence[MmaConfig], work: Work, times: Numbers
) -> Features:
    """Return the features of configs.

    Args:
        problem: the GEMM, with a row-major C.
        configs: the configs.
        work: what they do.
        times: their times by the model.
    """
    w, count = work, len(configs)
    limits = w.limits(w.held)
    tensor, shared, *_ = limits
    longest = np.maximum.reduce(list(limits))
    rows, width, columns, ctas = np.array([_tile(problem, c) for c in configs], float).T
    return {
        "memory": w.memory_us / times,
        "tensor cores": tensor / longest,
        "shared memory": shared / longest,
        "short copies": w.short_copies,
        "narrow stores": w.is_narrow,
        "B by columns": np.full(count, float(problem.b == "col")),
        "log rows": np.full(count, np.log2(problem.m)),
        "log k": np.full(count, np.log2(problem.k)),
        "log rows of a tile": log2(rows),
        "log columns of a tile": log2(width),
        "log columns used": log2(problem.n / columns),
        "log iterations": log2(w.iterations),
        "log CTAs": log2(ctas),
        "log CTAs of the busiest": log2(w.busiest),
        "log CTAs at once": log2(w.held),
    }


def _tile(problem: Problem, config: MmaConfig) -> tuple[int, int, int, int]:
    """Return the rows and columns of a tile, the columns of tiles side by side, and the tiles."""
    down, across = config.tiles(problem)
    rows, columns, _ = config.tile
    return rows, columns, across * columns, down * across * problem.batch
