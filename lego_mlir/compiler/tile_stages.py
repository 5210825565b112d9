"""The passes over tile IR as two steps of a compilation: placing tiles, and lowering them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.tile_ir.kernels import TileKernel, tile_kernels
from lego_mlir.mlir.tile_passes.assign_layouts import assign_layouts
from lego_mlir.mlir.tile_passes.fill_invalid import fill_invalid
from lego_mlir.mlir.tile_passes.insert_barriers import insert_barriers
from lego_mlir.mlir.tile_passes.lower_tiles import lower_tiles
from lego_mlir.mlir.tile_passes.plan_shared_memory import plan_shared_memory

TilePass: TypeAlias = Callable[[TileKernel], None]

PLACING: Sequence[TilePass] = (fill_invalid, assign_layouts)
LOWERING: Sequence[TilePass] = (lower_tiles, plan_shared_memory, insert_barriers)


def run_passes(
    passes: Sequence[TilePass], module: Any, layouts: Layouts, source: Source, target: Target
) -> None:
    """Run passes over the kernels of a module that have tiles, in place.

    Raises:
        LegoError: at the operation that a pass refuses.
    """
    with module.context, ir.Location.unknown(), mlir_errors(source):
        for kernel in tile_kernels(module, layouts, source, target):
            for step in passes:
                step(kernel)
        module.operation.verify()
