"""The instructions, one module for each kind of the PTX ISA's. Importing this fills the table.

`memory` has loads, stores and atomics, `copies` asynchronous copies, `matrix` the tensor cores.
"""

import lego_mlir.sim.instructions.bits
import lego_mlir.sim.instructions.calls
import lego_mlir.sim.instructions.comparison
import lego_mlir.sim.instructions.control
import lego_mlir.sim.instructions.conversion
import lego_mlir.sim.instructions.copies
import lego_mlir.sim.instructions.extended
import lego_mlir.sim.instructions.floating
import lego_mlir.sim.instructions.integer
import lego_mlir.sim.instructions.logic
import lego_mlir.sim.instructions.matrix
import lego_mlir.sim.instructions.memory
import lego_mlir.sim.instructions.movement
import lego_mlir.sim.instructions.video
import lego_mlir.sim.instructions.warp  # noqa: F401
