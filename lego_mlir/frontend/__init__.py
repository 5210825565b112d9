"""The Python face: a function that is traced becomes a kernel.

    @lg.kernel(grid=blocks.size, block=threads.size)
    def transpose(a: lg.Tensor["f32", A], b: lg.Tensor["f32", B]):
        m, n = blocks.inv(lg.block_id())
        ...

The function runs once, on values that stand for what a thread holds. Layouts apply to these
values as they do to numbers; every operation is recorded, with the Python line that it came from
as its location. What comes out is an MLIR module in the lego dialect, the same that one could
have written by hand, and from there on everything is shared with `legoc`.
"""

from lego_mlir.frontend.atomics import (
    atomic_add,
    atomic_and,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
)
from lego_mlir.frontend.branches import choose, search, segment, select, table
from lego_mlir.frontend.elementwise import exp2, gelu, relu, tanh
from lego_mlir.frontend.kernel import Kernel, KernelCall, kernel
from lego_mlir.frontend.operations import (
    barrier,
    block_id,
    fence,
    fold,
    loop,
    shared,
    thread_id,
)
from lego_mlir.frontend.sequence import KernelSequence, Workspace, sequence
from lego_mlir.frontend.sized import SizedLayout, pick, sized
from lego_mlir.frontend.tensors import EmptyType, Scalar, ScalarType, Tensor, TensorType
from lego_mlir.frontend.tiles import concatenate, dot, sum_slices, zeros
from lego_mlir.frontend.values import Value
from lego_mlir.frontend.warps import mma

__all__ = [
    "EmptyType",
    "Kernel",
    "KernelCall",
    "KernelSequence",
    "Scalar",
    "ScalarType",
    "SizedLayout",
    "Tensor",
    "TensorType",
    "Value",
    "Workspace",
    "atomic_add",
    "atomic_and",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "barrier",
    "block_id",
    "choose",
    "concatenate",
    "dot",
    "exp2",
    "fence",
    "fold",
    "gelu",
    "kernel",
    "loop",
    "mma",
    "pick",
    "relu",
    "search",
    "segment",
    "select",
    "sequence",
    "shared",
    "sized",
    "sum_slices",
    "table",
    "tanh",
    "thread_id",
    "zeros",
]
