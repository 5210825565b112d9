"""sim: runs the PTX that the compiler emits, on NumPy arrays, without a GPU.

    module = parse(ptx, "transpose.ptx")
    launch(module, "transpose_kernel", (1024, 1, 1), (256, 1, 1), [a, b])

`launch` runs a kernel, with checks for races, bad accesses and deadlocks; `TensorMap` is a TMA
descriptor as an argument; `Workspace` is memory that must be written before it is read; `Costs` is
what a launch counts with `costs=True`; `Budget` limits the instructions of several launches
together. `parse` gives a `Module` of `Kernel`s, and `Sources` the
source texts for errors. Other limits are those of `lego_mlir.limits`.

Supported are integer, logic, conversion and floating-point arithmetic, predicates and divergence,
all state spaces, barriers, warp votes, shuffles and reductions, atomics, asynchronous copies with
mbarriers and tensor maps, clusters, and matrix instructions. Anything else (calls, textures,
`tcgen05`) is an error before the kernel starts, which names the instruction, its location and its
section in the PTX ISA.

Execution is sequentially consistent and has no notion of time. Asynchronous operations are
performed as late as the program allows, as early as possible, or at random times (see
`machine.asynchronous`).

Rooms: `ptx` (text to decoded program), `machine` (execution), `instructions` (the instruction
table), `numerics`, `checks`, `cost`.
"""

from lego_mlir.sim.checks.uninitialized_memory import Workspace
from lego_mlir.sim.cost.counter import Costs
from lego_mlir.sim.machine.launch import launch
from lego_mlir.sim.machine.tensor_map import TensorMap
from lego_mlir.sim.machine.wave import Budget
from lego_mlir.sim.ptx.parser import parse
from lego_mlir.sim.ptx.syntax import Kernel, Module
from lego_mlir.sources import Sources

__all__ = [
    "Budget",
    "Costs",
    "Kernel",
    "Module",
    "Sources",
    "TensorMap",
    "Workspace",
    "launch",
    "parse",
]
