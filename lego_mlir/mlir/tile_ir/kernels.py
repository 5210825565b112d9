"""Kernels on tiles: what a pass over tile IR is given."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering.indices.index_reader import cluster_size, launch_sizes
from lego_mlir.mlir.modules import has_inside, operations_in
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.types import has_tiles, is_tile

_LAUNCH = "gpu.launch"


_THREAD_OPERATIONS = 3
"""The operations, at most, that make the number of a thread, at the begin of a kernel."""


@dataclass(frozen=True)
class TileKernel:
    """A gpu.launch whose body has tiles.

    Attributes:
        launch: the operation.
        layouts: reads the layouts of the module.
        source: the module's text, for errors.
        target: the GPU.
    """

    launch: Any
    layouts: Layouts
    source: Source
    target: Target

    @property
    def body(self) -> Any:
        """The block of the kernel."""
        return self.launch.regions[0].blocks[0]

    @property
    def warps(self) -> int:
        """The number of warps that hold the tiles: of a kernel with roles those of one role.

        Raises:
            LegoError: the number of threads is not constant, or no multiple of 32 along x.
        """
        attributes = self.launch.attributes
        if dialect.TILE_WARPS not in attributes:
            return self.launch_warps
        return int(ir.IntegerAttr(attributes[dialect.TILE_WARPS]).value)

    @property
    def launch_warps(self) -> int:
        """The number of warps of a CTA.

        Raises:
            LegoError: it is not constant, or no multiple of 32 threads along x.
        """
        sizes = [constant_size(size) for size in launch_sizes(self.launch)[3:]]
        threads, *others = sizes
        if threads is None or others != [1, 1] or threads % WARP_THREADS:
            shown = " x ".join("?" if n is None else str(n) for n in sizes)
            raise self.source.error(
                f"the tiles of a kernel are held by warps of {WARP_THREADS} threads along x, but "
                f"its CTAs have {shown} threads",
                self.launch.location,
                hint="launch a constant multiple of 32 threads along x, and 1 along y and z; in "
                "Python @lg.kernel(grid=..., warps=4)",
            )
        return threads // WARP_THREADS

    @cached_property
    def cluster(self) -> int:
        """The number of CTAs of a cluster."""
        return cluster_size(self.launch)

    @property
    def has_own_programs(self) -> bool:
        """Whether each CTA runs a program of its own, also in a cluster."""
        return dialect.OWN_PROGRAMS in self.launch.attributes

    @property
    def ctas(self) -> int:
        """The number of CTAs that hold the tiles together: those of a cluster."""
        return 1 if self.has_own_programs else self.cluster

    @property
    def launch_thread(self) -> Any:
        """The number of the thread in its CTA, an index."""
        return self.body.arguments[3]

    @property
    def thread(self) -> Any:
        """The number of the thread among those that hold the tiles, an index.

        In a kernel with roles `lower_rings` makes it: the number in the CTA, or in the team of a
        role, with its bound.
        """
        if dialect.TILE_WARPS not in self.launch.attributes:
            return self.launch_thread
        bound = [self.warps * WARP_THREADS]
        firsts = (op.operation for op in islice(self.body.operations, _THREAD_OPERATIONS))
        made = (op.results[0] for op in firsts if dialect.bounds_of(op) == bound)
        return next(made, self.launch_thread)

    def operations(self, names: Collection[str] | None = None) -> list[Any]:
        """Return the operations of the kernel that have tiles, outer before inner.

        Args:
            names: of the operations; `None` for all.
        """
        inside = operations_in(self.launch)
        if names is None:
            return [op for op in inside if has_tiles(op)]
        return [op for op in inside if op.name in names and has_tiles(op)]


def tile_kernels(
    module: Any, layouts: Layouts, source: Source, target: Target
) -> Iterator[TileKernel]:
    """Yield the kernels of a module that have tiles."""
    for op in list(operations_in(module.operation, (_LAUNCH,))):
        if op.name == _LAUNCH and has_inside(op, _touches_memory):
            yield TileKernel(op, layouts, source, target)


def _touches_memory(op: Any) -> bool:
    """Return whether an operation loads or stores a tile: a kernel on tiles has one."""
    match op.name:
        case tiles.GATHER | tiles.SCATTER:
            return True
        case dialect.LOAD:
            return is_tile(op.results[0])
        case dialect.STORE:
            return is_tile(op.operands[0])
    return False


def constant_size(size: Any) -> int | None:
    """Return the number that a constant of the host function is, `None` for another value."""
    if isinstance(size, ir.BlockArgument) or size.owner.name != CONSTANT:
        return None
    return int(ir.IntegerAttr(size.owner.attributes["value"]).value)
