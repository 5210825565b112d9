"""The features of `wgmma` configs; see `correction`."""

from __future__ import annotations

import numpy as np

from lego_mlir.hardware.gemm_models import WgmmaModel
from lego_mlir.kernels.gemm.corrections.correction import Features, Numbers, log2
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, tiles_of
from lego_mlir.kernels.gemm.wgmma.model import LIMITS, Times
from lego_mlir.kernels.gemm.wgmma.work import Work

_MOST_SHARE = 2.0
"""A part of a launch that overlaps others may take longer than the estimate of the whole."""

_LIMITS = ("tensor cores", "shared memory", "latency", "shared lines")
"""What may limit a step, as far as it is a feature."""


def features_of(
    problem: Problem,
    table: ConfigTable,
    work: Work,
    times: Times,
    model: WgmmaModel,
    *,
    stores_by_threads: bool,
    copied: Numbers | None = None,
) -> Features:
    """Return the features of configs.

    Args:
        problem: the GEMM, with a row-major C.
        table: the configs.
        work: what they do.
        times: their times; `total` with the time that stores by threads add.
        model: the card's constants.
        stores_by_threads: whether threads store C, and not TMA.
        copied: the share of the estimates by which copies of threads are longer than those of TMA;
            `None` for none.
    """
    t, w, total = table, work, times.total
    norm = model.step_norm
    longest = np.maximum.reduce(list(times.steps))
    limits = {name: step / longest for name, step in zip(LIMITS, times.steps, strict=True)}
    main_loop = w.waves * w.steps * sum(step**norm for step in times.steps) ** (1 / norm)
    store = w.waves * w.stored * model.store_us_per_byte * w.side_by_side
    down, _ = tiles_of(problem, table)
    rows = np.where(t.swap > 0, problem.n, problem.m)
    return {
        "memory": times.memory / total,
        "power": times.power / total,
        "main loop": _share(main_loop, total),
        "store": _share(store, total),
        **{name: limits[name] for name in _LIMITS},
        "log k": np.full(len(t), np.log2(problem.k)),
        "stores by threads": np.full(len(t), float(stores_by_threads)),
        "copied by threads": np.zeros(len(t)) if copied is None else copied,
        "next launch waits": w.blocked,
        "log readers": log2(w.readers),
        "log zeros": np.log1p(w.zeros + w.last_zeros),
        "log CTAs at once": log2(w.busy),
        "log rows used": log2(rows / (down * t.m)),
        "log columns of a tile": log2(t.n),
        "log stages": log2(t.stages),
        "consumers": t.consumers,
        "log cluster down": log2(t.down),
        "log cluster across": log2(t.across),
        "overlapped": t.overlap,
        "ping-pong": t.ping_pong,
        "log slices": log2(t.split_k),
        "slices through L2": t.through_l2,
        "slices in order": t.deterministic,
    }


def _share(part: Numbers, total: Numbers) -> Numbers:
    found: Numbers = np.minimum(_MOST_SHARE, part / total)
    return found
