"""Matrix instructions of a warp or a warpgroup, and what they share."""

import lego_mlir.sim.instructions.matrix.ldmatrix
import lego_mlir.sim.instructions.matrix.mma
import lego_mlir.sim.instructions.matrix.wgmma
import lego_mlir.sim.instructions.matrix.wmma  # noqa: F401
