"""The features of `gemv` configs; see `correction`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lego_mlir.kernels.gemm.corrections.correction import Features, log2
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.gemv.model import Times, Work
from lego_mlir.kernels.gemm.problem import Problem


def features_of(
    problem: Problem, configs: Sequence[GemvConfig], work: Work, times: Times
) -> Features:
    """Return the features of configs that all swap A and B, or none.

    Args:
        problem: the GEMM that they multiply.
        configs: the configs.
        work: what they do.
        times: their times by the model.
    """
    w, count = work, len(configs)
    _, cache, instructions, latency = (limit / times.total for limit in times.limits)
    rows, slices, depth = np.array(
        [(c.tile[0], c.split_k, c.tile[2] / c.split_k) for c in configs], float
    ).T
    return {
        "cache": cache,
        "instructions": instructions,
        "latency": latency,
        "A by rows": w.by_row,
        "B by columns": np.full(count, float(problem.b == "col")),
        "shifted": w.shifted,
        "packed B": np.array([float(c.packs_b) for c in configs]),
        "split": w.split,
        "log slices": log2(slices),
        "log rows of a tile": log2(rows),
        "log k of a tile": log2(depth),
        "log loads": log2(w.loads),
        "log bytes in flight": log2(w.in_flight),
        "log CTAs": log2(w.ctas),
        "log CTAs at once": log2(w.held),
        "log waves": log2(w.waves),
        "log iterations": log2(w.iterations),
        "log summed": log2(w.summed),
        "log tail": np.log1p(w.tail),
    }
