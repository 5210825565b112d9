"""The GEMM config for `mma.sync`: warps of a CTA that share the tiles of a `cp.async` pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import (
    MAX_CTA_THREADS,
    MMA_COLUMNS,
    MMA_K_BYTES,
    MMA_ROWS,
    WARP_THREADS,
)
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import raster_groups

_MOST_UNROLLED = 128
"""Instructions `mma.sync` of a warp in a K loop that is unrolled, at most. So many are in that of
512×512×512, which took 3.45 µs where LLVM unrolled it and 3.78 to 3.87 µs where it did not
(bench/results/gemm.md, schedule `cp_async`)."""


@dataclass(frozen=True, slots=True)
class MmaConfig(GemmConfig):
    """A GEMM config for warps that multiply by `mma.sync`.

    Attributes:
        tile: rows, columns and k of a CTA tile in one iteration of the K loop.
        warps: warps of a CTA, down and across its tile of C.
        stages: pipeline stages: tiles of A and of B that shared memory holds. All but one are being
            copied while one is multiplied.
        raster_group: height in tiles of a raster group, at most. CTAs take the tiles of a group
            column by column, so that what they read is still in the L2 cache.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    raster_group: int = 8

    schedule: ClassVar[str] = "cp_async"

    @property
    def threads(self) -> int:
        return WARP_THREADS * prod(self.warps)

    def params(self, problem: Problem) -> Mapping[str, int]:
        """Return the parameters of the schedule.

        A K loop is unrolled if it is short and the ring holds all of its tiles but one.

        Args:
            problem: the GEMM that the kernel computes.
        """
        iterations = self.k_iterations(problem)
        m, n, k = self.tile
        depth = MMA_K_BYTES // ELEMENT_BYTES[problem.dtype]
        each = prod((m // MMA_ROWS, n // MMA_COLUMNS, k // depth)) // prod(self.warps)
        is_short = iterations <= self.stages and iterations * each <= _MOST_UNROLLED
        return {"stages": self.stages, "unroll": iterations if is_short else 0}

    def grouped_params(self, problem: Problem) -> Mapping[str, int]:
        return {"stages": self.stages}

    def stage_bytes(self, problem: Problem) -> int:
        """Return the shared memory of one stage, in bytes."""
        m, n, k = self.tile
        return (m + n) * k * ELEMENT_BYTES[problem.dtype]

    def shared_bytes(self, problem: Problem) -> int:
        """Return the shared memory of a CTA: the stages, whose memory C's tile reuses later."""
        m, n, _ = self.tile
        return max(self.stages * self.stage_bytes(problem), m * n * ELEMENT_BYTES[problem.out])

    def rasterization(self, problem: Problem, batch: int | None = None) -> Layout:
        return raster_groups(*self.tiles(problem), self.raster_group)

    def check(self, problem: Problem, shared_bytes: int) -> None:
        if any(n < 1 or n & (n - 1) for n in (*self.tile, *self.warps)):
            raise LegoError(f"{self}: tile sizes and numbers of warps are powers of two")
        k = MMA_K_BYTES // ELEMENT_BYTES[problem.dtype]
        unit = (self.warps[0] * MMA_ROWS, self.warps[1] * MMA_COLUMNS, k)
        if any(n % u for n, u in zip(self.tile, unit, strict=True)):
            raise LegoError(
                f"{self}: the tile is not a multiple of {'×'.join(map(str, unit))}",
                hint=f"every warp multiplies whole instructions of {MMA_ROWS}×{MMA_COLUMNS}×{k}",
            )
        if self.threads > MAX_CTA_THREADS:
            raise LegoError(
                f"{self}: {self.threads} threads are more than the {MAX_CTA_THREADS} of a CTA"
            )
        self._check_pipeline()
        self._check_shared_memory(problem, shared_bytes)

    def __str__(self) -> str:
        tile, warps = ("×".join(map(str, sizes)) for sizes in (self.tile, self.warps))
        return f"tile {tile}, warps {warps}, stages {self.stages}, raster group {self.raster_group}"
