"""sim: runs the very PTX that the compiler emits, on NumPy arrays, where there is no GPU.

    module = parse(ptx, "transpose.ptx")
    launch(module, "transpose_kernel", (1024, 1, 1), (256, 1, 1), [a, b])

What is modelled: index and memory kernels — integer, logic, conversion, f16/bf16/f32/f64
arithmetic, predicates and divergence, all state spaces, barriers, warp votes, shuffles and
reductions, atomics. What is not (asynchronous copies, matrix instructions, mbarriers, clusters,
calls) is an error that names the instruction, its place and its section in the PTX ISA, before
the kernel starts.

Execution is sequentially consistent and has no notion of time.
"""

from lego_mlir.sim.launch import LIMIT, launch
from lego_mlir.sim.parser import parse
from lego_mlir.sim.syntax import Kernel, Module

__all__ = ["LIMIT", "Kernel", "Module", "launch", "parse"]
