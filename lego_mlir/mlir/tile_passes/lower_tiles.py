"""Lower tiles to what each thread holds in registers, and to its accesses of memory."""

from __future__ import annotations

from lego_mlir.mlir.tile_ir.kernels import TileKernel


def lower_tiles(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
