"""The tuner of GEMMs: it times the cost model's best configs on this GPU, and remembers one.

`kernels.tuning` says when. The fastest config is entered into a table of the user's (`tuned_table`
has its form); GEMMs of that table are not timed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import tuning
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.problem import Problem

CANDIDATES = 5
"""Configs that are timed: of 280 random GEMMs on an H200, the best of the model's first five was
0.4 % slower than the best of all that were measured, on average."""


def tuned_config(
    device: str,
    problem: Problem,
    configs: Sequence[GemmConfig],
    build: Callable[[GemmConfig], Artifact],
    timer: tuning.Timer | None = None,
) -> GemmConfig:
    """Return the fastest config of a GEMM on the GPU in this machine.

    A table that cannot be written is no error: the GEMM is timed again next time.

    Args:
        device: the name that the GPU's driver reports.
        problem: the GEMM, with a row-major C.
        configs: the configs, those with the best estimates first.
        build: compiles the GEMM with a config.
        timer: times artifacts; by default on the GPU in this machine.

    Raises:
        LegoError: no config compiles, or the GPU has not enough memory for the matrices.
    """
    known = remembered(device, problem)
    if known is not None:
        return known
    timer = timer or partial(tuning.time_on_gpu, "matmul")
    best = tuning.fastest(configs[:CANDIDATES], build, timer)
    tables = tuning.folder()
    if tables is not None:
        with suppress(LegoError, OSError):
            tuned_table.record(device, problem, best, tables)
    return best


def remembered(device: str, problem: Problem) -> GemmConfig | None:
    """Return the config of a GEMM from the user's table; `None` if it has none."""
    tables = tuning.folder()
    return None if tables is None else tuned_table.lookup_any(device, problem, tables)
