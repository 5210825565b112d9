"""Dots on the tensor cores: `mma.sync` of each warp, and `wgmma` of each warpgroup.

Which of them a dot is follows from where its operand B lies. Layouts of operands are chosen by
`assign_layouts`, and tiles get into shared memory by conversions.
"""

from lego_mlir.mlir.tile_passes.lower_tiles.dots.mma import lower_dot
from lego_mlir.mlir.tile_passes.lower_tiles.dots.wgmma import lower_dot_wait, lower_warpgroup_dot

__all__ = ["lower_dot", "lower_dot_wait", "lower_warpgroup_dot"]
