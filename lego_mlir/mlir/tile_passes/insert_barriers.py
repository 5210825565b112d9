"""Insert barriers where a thread accesses what another one has written, or the reverse."""

from __future__ import annotations

from lego_mlir.mlir.tile_ir.kernels import TileKernel


def insert_barriers(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
