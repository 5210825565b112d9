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

from lego_mlir.frontend.asynchronous_copies import commit_group, copy_async, wait_group
from lego_mlir.frontend.atomics import (
    atomic_add,
    atomic_and,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
)
from lego_mlir.frontend.control.branches import choose, search, segment, select, table
from lego_mlir.frontend.control.conditions import cond, if_
from lego_mlir.frontend.control.debugging import check, printf
from lego_mlir.frontend.control.loops import fold, loop, while_
from lego_mlir.frontend.host.argument_types import EmptyType, Scalar, ScalarType, Tensor, TensorType
from lego_mlir.frontend.host.kernel import Kernel, KernelCall, kernel
from lego_mlir.frontend.host.kernel_choice import KernelChoice
from lego_mlir.frontend.host.sequence import KernelSequence, Workspace, sequence
from lego_mlir.frontend.mathematics import (
    abs,
    ceil,
    clamp,
    cos,
    erf,
    exp,
    exp2,
    floor,
    fma,
    gelu,
    log,
    log2,
    pow,
    relu,
    round,
    rsqrt,
    sigmoid,
    silu,
    sin,
    softplus,
    sqrt,
    tanh,
)
from lego_mlir.frontend.operations import (
    barrier,
    block_id,
    fence,
    launch_dependents,
    shared,
    thread_id,
)
from lego_mlir.frontend.operators import where
from lego_mlir.frontend.raw import inline_ptx, op
from lego_mlir.frontend.rings import ring
from lego_mlir.frontend.sized import SizedLayout, pick, sized
from lego_mlir.frontend.tiles.clusters import cta_rank, reduce_scatter
from lego_mlir.frontend.tiles.creation import (
    arange,
    broadcast_to,
    convert,
    fill,
    full,
    iota,
    item,
    join,
    restrict,
    split,
    take,
    zeros,
    zeros_like,
)
from lego_mlir.frontend.tiles.reductions import (
    all,
    any,
    argmax,
    argmin,
    max,
    min,
    prod,
    reduce,
    sum,
)
from lego_mlir.frontend.tiles.scans import cummax, cummin, cumprod, cumsum, scan
from lego_mlir.frontend.tiles.sorting import argsort, sort, topk
from lego_mlir.frontend.tiles.tile import Tile
from lego_mlir.frontend.values import Value
from lego_mlir.frontend.vectors import concatenate, dot
from lego_mlir.frontend.warps import mma

__all__ = [
    "EmptyType",
    "Kernel",
    "KernelCall",
    "KernelChoice",
    "KernelSequence",
    "Scalar",
    "ScalarType",
    "SizedLayout",
    "Tensor",
    "TensorType",
    "Tile",
    "Value",
    "Workspace",
    "abs",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "atomic_add",
    "atomic_and",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "barrier",
    "block_id",
    "broadcast_to",
    "ceil",
    "check",
    "choose",
    "clamp",
    "commit_group",
    "concatenate",
    "cond",
    "convert",
    "copy_async",
    "cos",
    "cta_rank",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dot",
    "erf",
    "exp",
    "exp2",
    "fence",
    "fill",
    "floor",
    "fma",
    "fold",
    "full",
    "gelu",
    "if_",
    "inline_ptx",
    "iota",
    "item",
    "join",
    "kernel",
    "launch_dependents",
    "log",
    "log2",
    "loop",
    "max",
    "min",
    "mma",
    "op",
    "pick",
    "pow",
    "printf",
    "prod",
    "reduce",
    "reduce_scatter",
    "relu",
    "restrict",
    "ring",
    "round",
    "rsqrt",
    "scan",
    "search",
    "segment",
    "select",
    "sequence",
    "shared",
    "sigmoid",
    "silu",
    "sin",
    "sized",
    "softplus",
    "sort",
    "split",
    "sqrt",
    "sum",
    "table",
    "take",
    "tanh",
    "thread_id",
    "topk",
    "wait_group",
    "where",
    "while_",
    "zeros",
    "zeros_like",
]
