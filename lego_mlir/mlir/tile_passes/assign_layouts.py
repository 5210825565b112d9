"""Give every tile a distributed layout, and insert conversions where operations need others.

Anchors come first: dots, then loads and stores. Layouts propagate from them; what is cheap is
computed again in each layout; conversions are inserted where layouts differ, by cost.
"""

from __future__ import annotations

from lego_mlir.mlir.tile_ir.kernels import TileKernel


def assign_layouts(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
