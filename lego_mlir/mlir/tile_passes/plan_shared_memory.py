"""Give the buffers of conversions offsets in one allocation of shared memory."""

from __future__ import annotations

from lego_mlir.mlir.tile_ir.kernels import TileKernel


def plan_shared_memory(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
