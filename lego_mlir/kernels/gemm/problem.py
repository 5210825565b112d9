"""How a product of matrices is divided: among blocks, warps, and the turns of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels.gemm.rasterization import grouped
from lego_mlir.kernels.shared_layouts import UNIT, staged_tile, staged_transpose

BYTES = {"f16": 2, "bf16": 2, "i8": 1, "f8E4M3FN": 1, "f8E5M2": 1, "f32": 4, "i32": 4}
"""Of an element."""

INSTRUCTION = (16, 8, 32)
"""What one `mma.sync` multiplies: rows, columns, and bytes of k (PTX ISA, "mma")."""

WARP = 32


@dataclass(frozen=True, slots=True)
class Problem:
    """A product of matrices, as far as its division depends on it.

    Attributes:
        m: rows of A and of C.
        n: columns of B and of C.
        k: columns of A, rows of B.
        dtype: of A and B.
        out: of C.
        a: the contiguous dimension of A, `row` or `col`.
        b: that of B.
        c: that of C.
        batch: how many products.
    """

    m: int
    n: int
    k: int
    dtype: str
    out: str
    a: str = "row"
    b: str = "row"
    c: str = "row"
    batch: int = 1

    @property
    def transpose(self) -> Problem:
        """The product of the transposes in reverse order, which is the transpose of the product."""
        other = {"row": "col", "col": "row"}
        return replace(self, m=self.n, n=self.m, a=other[self.b], b=other[self.a], c=other[self.c])


@dataclass(frozen=True, slots=True)
class MmaConfig:
    """How a product is divided among warps that multiply by `mma.sync`.

    Attributes:
        tile: rows, columns and k of what a block multiplies at a time.
        warps: of a block, down and across its tile of C.
        stages: tiles of A and of B that shared memory holds; all but one are on their way while
            one is multiplied.
        raster_group: tiles of C that blocks take one below the other before they go on to the next
            column, at most: what they read is then still in the cache.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    raster_group: int = 8

    schedule: ClassVar[str] = "hmma"

    @property
    def threads(self) -> int:
        """Of a block."""
        return WARP * prod(self.warps)

    @property
    def warp_layout(self) -> Layout:
        """From the number of a warp to its part of the tile of C."""
        return OrderBy(Row(*self.warps))

    def params(self, problem: Problem) -> Mapping[str, int]:
        """The values of the schedule's parameters."""
        return {"buffers": self.stages, "depth": self.stages - 1}

    def tiles(self, problem: Problem) -> tuple[int, int]:
        """How many tiles cover C, down and across."""
        return -(-problem.m // self.tile[0]), -(-problem.n // self.tile[1])

    def steps(self, problem: Problem) -> int:
        """How many tiles cover k."""
        return -(-problem.k // self.tile[2])

    def stage_bytes(self, problem: Problem) -> int:
        """Shared memory of one stage."""
        m, n, k = self.tile
        return (m + n) * k * BYTES[problem.dtype]

    def shared_bytes(self, problem: Problem) -> int:
        """Shared memory of a block: the stages; the tile of C later takes their place."""
        m, n, _ = self.tile
        return max(self.stages * self.stage_bytes(problem), m * n * BYTES[problem.out])

    def blocks(self, problem: Problem) -> Layout:
        """From the number of a block to its tile of C.

        Groups are as many tiles high, or wide, as divide C's tiles and are at most `raster_group`.
        """
        return grouped(*self.tiles(problem), self.raster_group)

    def staging(self, problem: Problem) -> tuple[Layout, Layout, Layout]:
        """Where tiles of A, B and C lie in shared memory.

        A tile is contiguous as its matrix is, but for elements of 8 bits: `ldmatrix` takes pairs of
        bytes, and `mma` multiplies neighbours along k, so these lie along k.
        """
        m, n, k = self.tile
        size, out = BYTES[problem.dtype], BYTES[problem.out]
        by_row, by_column = problem.a == "row" or size == 1, problem.b == "row" and size > 1
        return (
            (staged_tile if by_row else staged_transpose)(m, k, size),
            (staged_tile if by_column else staged_transpose)(k, n, size),
            # Four lanes have eight neighbours of a row of sums, which they write together.
            staged_tile(m, n, out, unit=max(UNIT, 8 * out)),
        )

    def check(self, problem: Problem, shared_bytes: int) -> None:
        """Check that a product can be divided so.

        Args:
            problem: the product.
            shared_bytes: that a block may have.

        Raises:
            LegoError: it cannot, and why.
        """
        size = BYTES[problem.dtype]
        if any(n < 1 or n & (n - 1) for n in (*self.tile, *self.warps)):
            raise LegoError(
                f"{self}: the sizes of a tile and the numbers of warps are powers of two"
            )
        rows, columns, k = INSTRUCTION[0], INSTRUCTION[1], INSTRUCTION[2] // size
        unit = (self.warps[0] * rows, self.warps[1] * columns, k)
        if any(n % u for n, u in zip(self.tile, unit, strict=True)):
            raise LegoError(
                f"{self}: the tile is no multiple of {'×'.join(map(str, unit))}",
                hint=f"every warp multiplies whole instructions of {rows}×{columns}×{k}",
            )
        if not 1 <= self.threads <= 1024:
            raise LegoError(f"{self}: {self.threads} threads are more than the 1024 of a block")
        if self.stages < 2:
            raise LegoError(f"{self}: one stage is filled while another is used, so at least 2")
        if self.raster_group < 1:
            raise LegoError(f"{self}: a group has at least one tile")
        needed = self.shared_bytes(problem)
        if needed > shared_bytes:
            raise LegoError(
                f"{self}: {needed} bytes of shared memory are {needed - shared_bytes} more than "
                f"the {shared_bytes} of a block",
                hint="fewer stages, or a smaller tile",
            )

    def __str__(self) -> str:
        tile, warps = ("×".join(map(str, sizes)) for sizes in (self.tile, self.warps))
        return f"tile {tile}, warps {warps}, stages {self.stages}, group {self.raster_group}"
