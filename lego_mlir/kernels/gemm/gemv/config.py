"""The GEMM config for few columns of C: a memory-bound matrix times a few vectors.

Every warp loads fragments of A from global memory straight into registers, 16 bytes a lane, and
multiplies them by `mma.sync`; B has so few columns that it stays in the caches. Tensor cores need
no order of k, so a lane's 16 bytes are the elements of fragments as they are (A contiguous along
k), or after a transposition in registers (A contiguous along m).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Workspace
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import MAX_CTA_THREADS, MMA_COLUMNS, MMA_ROWS, WARP_THREADS
from lego_mlir.kernels.gemm.config import SLICE_ARRIVALS, SLICE_SUMS, GemmConfig
from lego_mlir.kernels.gemm.gemv.chunks import (
    CHUNK_BYTES,
    GROUPS,
    HALVES,
    chunk_elements,
    shift_classes,
    warp_unit,
)
from lego_mlir.kernels.gemm.gemv.packing import PACKED, Packing
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.rasterization import raster_groups

MAX_COLUMNS = 32
"""Columns of C that one CTA computes, at most."""


@dataclass(frozen=True, slots=True)
class GemvConfig(GemmConfig):
    """A GEMM config for C of few columns, or by `swap_ab` of few rows.

    Attributes:
        tile: rows and columns of C that a CTA computes, and k of one iteration of its K loop.
        warps: warps of a CTA, down its rows of C, and along k; the latter add their accumulators
            through shared memory.
        stages: chunks along k that a warp loads in one iteration before it multiplies any.
        raster_group: as in the other configs.
        swap_ab: whether the transposes are multiplied, C' = B' A'.
        split_k: slices of k, each computed by CTAs of their own, which add their accumulators
            through the L2 cache; the last one to arrive stores C.
        packs_b: whether a kernel that runs first packs B, for an A whose rows (or columns) begin at
            different positions in a chunk (`gemv.packing`).
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    raster_group: int = 1
    swap_ab: bool = False
    split_k: int = 1
    packs_b: bool = False

    schedule: ClassVar[str] = "gemv"

    @property
    def threads(self) -> int:
        return WARP_THREADS * prod(self.warps)

    @property
    def k_warps(self) -> int:
        """The warps along k, of the CTAs of all slices."""
        return self.warps[1] * self.split_k

    def workspaces(self, problem: Problem, accumulator: str) -> Mapping[str, Workspace]:
        found = {PACKED: Packing(problem).workspace} if self.packs_b else {}
        if self.split_k == 1:
            return found
        tiles = prod(self.tiles(problem)) * problem.batch
        elements = self.output_rows(problem) * self.tile[1]
        return found | {
            SLICE_SUMS: Workspace(accumulator, (tiles, elements), zeroed=True),
            SLICE_ARRIVALS: Workspace("i32", (tiles,), zeroed=True),
        }

    @property
    def grid_slices(self) -> int:
        return self.split_k

    @property
    def is_swapped(self) -> bool:
        return self.swap_ab

    def params(self, problem: Problem) -> Mapping[str, int]:
        return {}

    def rasterization(self, problem: Problem, batch: int | None = None) -> Layout:
        return raster_groups(*self.tiles(problem), self.raster_group)

    def shared_bytes(self, problem: Problem) -> int:
        """Return the shared memory of a CTA: the accumulators of all its warps."""
        return prod(self.tile[:2]) * self.warps[1] * ELEMENT_BYTES["f32"]

    def tiles(self, problem: Problem) -> tuple[int, int]:
        classes, rows = shift_classes(problem), self.output_rows(problem)
        down = -(-problem.m // rows)
        if problem.a == "row":  # a CTA has the rows of one class
            down = -(-problem.m // (rows * classes)) * classes
        return down, -(-problem.n // self.tile[1])

    def output_rows(self, problem: Problem) -> int:
        """Return the rows of C that a CTA stores.

        If columns of A are shifted against each other, those are the rows that all its chunks
        cover, at least: one chunk less.
        """
        is_shifted = problem.a == "col" and shift_classes(problem) > 1
        return self.tile[0] - chunk_elements(problem) * is_shifted

    # --------------------------------------------------------------------- fragments of a warp
    def row_tiles(self, problem: Problem) -> int:
        """Return the `mma` tiles of 16 rows of a warp."""
        return self.tile[0] // (MMA_ROWS * self.warps[0])

    def column_tiles(self) -> int:
        """Return the `mma` tiles of 8 columns of a warp."""
        return self.tile[1] // MMA_COLUMNS

    def row_layout(self, problem: Problem) -> Layout:
        """Return the layout from (warp, row tile, half of the tile, group) to the CTA's row.

        If A is contiguous along k, a group has one row of each half tile. Otherwise it has the
        neighbouring rows of its chunks, two in each of several row tiles.
        """
        warps, tiles = self.warps[0], self.row_tiles(problem)
        if problem.a == "row":
            return OrderBy(Row(warps, tiles, HALVES, GROUPS))
        pairs = chunk_elements(problem) // HALVES
        sizes = [warps, tiles // pairs, pairs, HALVES, GROUPS]
        return OrderBy(RegP(sizes, [0, 1, 4, 2, 3])).GroupBy([warps, tiles, HALVES, GROUPS])

    def check(self, problem: Problem, shared_bytes: int) -> None:
        rows, columns, k = self.tile
        down, along = self.warps
        if min(self.warps) < 1 or self.threads > MAX_CTA_THREADS:
            raise LegoError(f"{self}: a CTA has 1 to {MAX_CTA_THREADS // WARP_THREADS} warps")
        if self.stages < 1 or self.raster_group < 1:
            raise LegoError(f"{self}: stages and raster_group are positive numbers")
        unit_rows, unit_k = warp_unit(problem)
        if rows < 1 or rows % (unit_rows * down):
            raise LegoError(
                f"{self}: {rows} rows are not a multiple of {unit_rows * down}",
                hint=f"a warp multiplies {unit_rows} rows at a time",
            )
        if not 0 < columns <= MAX_COLUMNS or columns % MMA_COLUMNS:
            raise LegoError(
                f"{self}: a CTA computes 8, 16, 24 or {MAX_COLUMNS} columns of C, not {columns}"
            )
        if self.split_k < 1:
            raise LegoError(f"{self}: split_k is a positive number")
        if self.packs_b and (shift_classes(problem) == 1 or self.k_iterations(problem) < 2):
            raise LegoError(
                f"{self}: packs_b is for an A whose rows (or columns) are no multiples of "
                f"{CHUNK_BYTES} bytes, and a K loop of several iterations",
                hint="packs_b=False",
            )
        if k != unit_k * self.k_warps * self.stages:
            raise LegoError(
                f"{self}: {self.k_warps} warps that load {self.stages} chunks of k = {unit_k} each "
                f"multiply k = {unit_k * self.k_warps * self.stages} in an iteration, not {k}"
            )
        classes = shift_classes(problem)
        if problem.a == "col" and along % classes:
            raise LegoError(
                f"{self}: {along} warps along k are not a multiple of {classes}",
                hint=f"columns of A begin at {classes} different positions in a chunk of "
                f"{CHUNK_BYTES} bytes, and a warp takes columns that begin at the same one",
            )
        self._check_shared_memory(problem, shared_bytes)

    def __str__(self) -> str:
        tile, warps = ("×".join(map(str, sizes)) for sizes in (self.tile, self.warps))
        swapped = ", swapped operands" * self.swap_ab
        split = f", split-K {self.split_k} through the L2 cache" if self.split_k > 1 else ""
        packed = ", packed B" * self.packs_b
        return f"tile {tile}, warps {warps}, stages {self.stages}{split}{packed}{swapped}"
