"""The GEMM config for `mma.sync`: warps of a CTA that share the tiles of a `cp.async` pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lego_mlir.algebra import Layout, OrderBy, Row
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
from lego_mlir.kernels.gemm.shared_layouts import (
    UNIT_BYTES,
    xor_swizzled_tile,
    xor_swizzled_transpose,
)


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
        on_tiles: whether the kernel is a program on tiles (`kernels.gemm.tile_program`), whose
            pipeline the steps of the schedule `cp_async` make.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    raster_group: int = 8
    on_tiles: bool = False

    schedule: ClassVar[str] = "hmma"

    @property
    def threads(self) -> int:
        return WARP_THREADS * prod(self.warps)

    @property
    def warp_layout(self) -> Layout:
        return OrderBy(Row(*self.warps))

    def params(self, problem: Problem) -> Mapping[str, int]:
        return {"buffers": self.stages, "depth": self.stages - 1}

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

    def shared_layouts(self, problem: Problem) -> tuple[Layout, Layout, Layout]:
        """Return the shared-memory layouts of the tiles of A, B and C.

        A tile is contiguous along the same dimension as its matrix, except for 8-bit elements:
        `ldmatrix` loads pairs of bytes and `mma` multiplies neighbours along k, so these are
        contiguous along k.
        """
        m, n, k = self.tile
        size, out = ELEMENT_BYTES[problem.dtype], ELEMENT_BYTES[problem.out]
        by_row, by_column = problem.a == "row" or size == 1, problem.b == "row" and size > 1
        return (
            (xor_swizzled_tile if by_row else xor_swizzled_transpose)(m, k, size),
            (xor_swizzled_tile if by_column else xor_swizzled_transpose)(k, n, size),
            # Four lanes hold eight neighbours of a row of the accumulator and store them together.
            xor_swizzled_tile(m, n, out, unit_bytes=max(UNIT_BYTES, 8 * out)),
        )

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
        text = f"tile {tile}, warps {warps}, stages {self.stages}, raster group {self.raster_group}"
        return f"{text}, on tiles" if self.on_tiles else text
