"""Asynchronous copies, the mbarriers that count them, tensor maps, and clusters."""

import lego_mlir.sim.instructions.copies.asynchronous
import lego_mlir.sim.instructions.copies.bulk
import lego_mlir.sim.instructions.copies.cluster
import lego_mlir.sim.instructions.copies.mbarrier
import lego_mlir.sim.instructions.copies.tensormap
import lego_mlir.sim.instructions.copies.tma  # noqa: F401
