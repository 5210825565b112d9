"""Addresses, loads, stores, atomics and cache hints."""

import lego_mlir.sim.instructions.memory.addresses
import lego_mlir.sim.instructions.memory.atomic
import lego_mlir.sim.instructions.memory.caches
import lego_mlir.sim.instructions.memory.loads  # noqa: F401
