"""What the steps of the schedule `cp_async` take for a config of `mma.sync`.

The kernel is that of `kernels.gemm.tile_program`. Its accumulator is placed: the config says how
warps divide it. All other layouts are derived.
"""

from __future__ import annotations

from math import prod

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.mma_grids import accumulator
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_K_BYTES, MMA_ROWS
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem

SCHEDULE = "cp_async"

_MOST_UNROLLED = 128
"""Instructions `mma.sync` of a warp in a K loop that is unrolled, at most. So many are in that of
512×512×512, which took 3.45 µs where LLVM unrolled it and 3.78 to 3.87 µs where it did not
(bench/results/gemm.md, schedule `hmma`)."""


def schedule_params(config: MmaConfig, problem: Problem) -> dict[str, int]:
    """Return the parameters of the schedule.

    A K loop is unrolled if it is short and the ring holds all of its tiles but one.

    Args:
        config: the config.
        problem: the GEMM that the kernel computes.
    """
    iterations = config.k_iterations(problem)
    m, n, k = config.tile
    depth = MMA_K_BYTES // ELEMENT_BYTES[problem.dtype]
    each = prod((m // MMA_ROWS, n // MMA_COLUMNS, k // depth)) // prod(config.warps)
    is_short = iterations <= config.stages and iterations * each <= _MOST_UNROLLED
    return {"stages": config.stages, "unroll": iterations if is_short else 0}


def accumulator_layout(config: MmaConfig) -> DistributedLayout:
    """Return how the warps of a CTA divide the accumulator."""
    m, n, _ = config.tile
    return accumulator((m, n), config.warps)
