"""What every GEMM config has, whichever instruction multiplies its tiles.

A config says how a GEMM is divided among CTAs, warps and pipeline stages. The planner, the kernel
bodies and the tuned table use only what stands here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Workspace
from lego_mlir.kernels.gemm.problem import Problem

SLICE_SUMS, SLICE_ARRIVALS = "slice_sums", "slice_arrivals"
"""The workspaces of split-K through the L2 cache: the accumulators of each tile of C, and how many
of its CTAs have added to them."""


class GemmConfig(ABC):
    """A GEMM config; a frozen dataclass for each kind of tensor core instruction.

    Attributes:
        tile: rows, columns and k of a CTA tile in one iteration of the K loop.
        stages: pipeline stages: tiles of A and of B that shared memory holds.
        raster_group: height in tiles of a raster group, at most; see `rasterization`.
        schedule: the schedule that such a config is for.
        is_batch_rasterized: whether CTA ids along x count the tiles of the whole batch; else a
            CTA's position in the batch is its id along y.
        ungrouped: fields that keep their defaults in grouped and ragged GEMMs, where neighbouring
            tiles have no operand in common.
    """

    __slots__ = ()

    tile: tuple[int, int, int]
    stages: int
    raster_group: int

    schedule: ClassVar[str]
    is_batch_rasterized: ClassVar[bool] = False
    ungrouped: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def threads(self) -> int:
        """The threads of a CTA that multiply."""

    @property
    def is_swapped(self) -> bool:
        """Whether the kernel computes the transpose of C, as C' = B' A'."""
        return False

    @abstractmethod
    def params(self, problem: Problem) -> Mapping[str, int]:
        """Return the values of the schedule's parameters."""

    def grouped_params(self, problem: Problem) -> Mapping[str, int]:
        """Return the parameters for several GEMMs in one launch, one of which is `problem`."""
        return self.params(problem)

    def workspaces(self, problem: Problem, accumulator: str) -> Mapping[str, Workspace]:
        """Return the memory that the kernel has beside the matrices, by name.

        Args:
            problem: the GEMM.
            accumulator: the element type of the accumulator.
        """
        return {}

    @property
    def grid_slices(self) -> int:
        """The CTAs of a tile along z, one for each slice of k; 1 if a schedule divides k."""
        return 1

    def promoted(self, promote: int) -> Self:
        """Return the config that promotes its accumulators every `promote` iterations, if not 0.

        A config whose instruction accumulates in full precision returns itself.
        """
        return self

    def tiles(self, problem: Problem) -> tuple[int, int]:
        """Return the number of tiles that cover C, down and across."""
        return ceildiv(problem.m, self.tile[0]), ceildiv(problem.n, self.tile[1])

    def has_epilogue_registers(self, *, loads_tiles: bool) -> bool:
        """Return whether threads have registers for an epilogue of the usual size.

        Args:
            loads_tiles: whether the epilogue loads tiles of matrices of C's size.
        """
        return True

    def padding(self, problem: Problem) -> tuple[int, int]:
        """Return the tiles, down and across, of which the grid has a multiple.

        The grid may then have tiles outside of C: rows and columns of zeros, which are not stored.
        It is (1, 1) if C has such a multiple itself.
        """
        return 1, 1

    def grid(self, problem: Problem) -> tuple[int, int]:
        """Return the tiles of the grid, down and across."""
        counts = zip(self.tiles(problem), self.padding(problem), strict=True)
        down, across = (ceildiv(count, multiple) * multiple for count, multiple in counts)
        return down, across

    def k_iterations(self, problem: Problem) -> int:
        """Return the iterations of the K loop over the whole of k."""
        return -(-problem.k // self.tile[2])

    @abstractmethod
    def rasterization(self, problem: Problem, batch: int | None = None) -> Layout:
        """Return the layout from a CTA's id along x to its tile of C, (down, across).

        Args:
            problem: the GEMM.
            batch: GEMMs of a batched launch; with it and `is_batch_rasterized` the layout is to
                (GEMM, down, across).
        """

    @abstractmethod
    def shared_bytes(self, problem: Problem) -> int:
        """Return the shared memory of a CTA, in bytes."""

    @abstractmethod
    def check(self, problem: Problem, shared_bytes: int) -> None:
        """Check that the config fits a GEMM and a target.

        Args:
            problem: the GEMM.
            shared_bytes: shared memory that a CTA may have, in bytes.

        Raises:
            LegoError: it does not fit; the message says which field is wrong.
        """

    def _check_pipeline(self) -> None:
        """Check the number of stages and the raster group."""
        if self.stages < 2:
            raise LegoError(
                f"{self}: a pipeline has at least 2 stages; one is filled while another is used"
            )
        if self.raster_group < 1:
            raise LegoError(f"{self}: a raster group has at least one tile")

    def _check_shared_memory(self, problem: Problem, shared_bytes: int) -> None:
        """Check that a CTA has enough shared memory."""
        needed = self.shared_bytes(problem)
        if needed > shared_bytes:
            raise LegoError(
                f"{self}: {needed} bytes of shared memory are {needed - shared_bytes} more than "
                f"the {shared_bytes} of a CTA",
                hint="fewer stages, or a smaller tile",
            )

    def check_grouped(self, what: str) -> None:
        """Check that the fields in `ungrouped` have their defaults.

        Args:
            what: the function that was called, for the message.

        Raises:
            LegoError: one of them has not.
        """
        this: Any = self  # a dataclass
        defaults = {f.name: f.default for f in fields(this)}
        changed = [name for name in self.ungrouped if getattr(self, name) != defaults[name]]
        if changed:
            raise LegoError(
                f"{what}: the config {self} sets {', '.join(changed)}, which are for a single GEMM",
                hint=f"leave {', '.join(self.ungrouped)} at their defaults",
            )
