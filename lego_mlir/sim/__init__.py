"""sim: runs the very PTX that the compiler emits, on NumPy arrays, where there is no GPU.

    module = parse(ptx, "transpose.ptx")
    launch(module, "transpose_kernel", (1024, 1, 1), (256, 1, 1), [a, b])

What is modelled: integer, logic, conversion and floating-point arithmetic, predicates and
divergence, all state spaces, barriers, warp votes, shuffles and reductions, atomics; asynchronous
copies of threads and of the copy engine with tensor maps, mbarriers, clusters; matrix instructions.
What is not (calls, textures, `tcgen05`) is an error that names the instruction, its place and its
section in the PTX ISA, before the kernel starts.

Execution is sequentially consistent and has no notion of time; asynchronous work is done as late as
the program allows, as early, or at random moments (see `asynchronous`).
"""

from lego_mlir.sim.cost.counter import Costs
from lego_mlir.sim.machine.launch import launch
from lego_mlir.sim.machine.tensor_map import TensorMap
from lego_mlir.sim.machine.wave import Budget
from lego_mlir.sim.ptx.parser import parse
from lego_mlir.sim.ptx.syntax import Kernel, Module
from lego_mlir.sources import Sources

__all__ = ["Budget", "Costs", "Kernel", "Module", "Sources", "TensorMap", "launch", "parse"]
