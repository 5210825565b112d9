"""What makes a kernel of several GEMMs from its program on tiles: threads, schedule, parameters."""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm import tile_program
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig


def steps_of(
    config: GemmConfig,
    problem: Problem,
    target: Target,
    *,
    pdl: bool = True,
    stores_by_tma: bool = False,
) -> dict[str, Any]:
    """Return what `lego_mlir.kernel` takes for a config.

    Args:
        config: the config.
        problem: one of the GEMMs.
        target: the GPU architecture.
        pdl: whether the launch may use programmatic dependent launch.
        stores_by_tma: whether TMA stores C with `wgmma`, however many tiles a CTA has; else threads
            do.
    """
    found: dict[str, Any] = {"warps": config.threads // WARP_THREADS, "pdl": pdl}
    if not isinstance(config, WgmmaConfig):
        return {**found, "schedule": MmaConfig.schedule, "params": config.grouped_params(problem)}
    params = tile_program.schedule_params(
        config,
        problem,
        target,
        stores_by_tma=stores_by_tma,
        stores_by_threads=not stores_by_tma,
    )
    return {
        **found,
        "tile_multiple": tile_program.tile_multiple(config),
        "schedule": WgmmaConfig.schedule,
        "params": params,
    }
