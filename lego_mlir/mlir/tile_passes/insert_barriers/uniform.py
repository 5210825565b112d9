"""Which values all threads of a CTA have.

In a kernel on tiles scalars are the same in all threads. A value differs between threads only where
a pass has computed it from the thread's number, or taken it from a part of a tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_ir.kernels import TileKernel

_COMPUTES = ("arith.", "affine.", dialect.INV, dialect.APPLY)
_THREAD_IDS = (
    "gpu.thread_id",
    "gpu.lane_id",
    "gpu.cluster_block_id",
    "nvvm.read.ptx.sreg.tid",
    "nvvm.read.ptx.sreg.lane",
)
"""What differs between threads of a CTA, or between the CTAs of a cluster."""


def is_divergent(kernel: TileKernel, op: Any) -> bool:
    """Return whether threads of a CTA may run an operation's regions differently.

    What decides does so where it is computed from the thread's number.
    """
    match op.name:
        case "scf.if":
            deciding = [op.operands[0]]
        case "scf.for":
            deciding = list(op.operands)[:3]
        case "scf.while":
            end = list(op.regions[0].blocks[0].operations)[-1]
            deciding = [end.operands[0]]
        case _:
            return False
    return dialect.DIVERGENT in op.attributes or any(
        _is_thread_number(kernel, leaf) for value in deciding for leaf in _leaves(value)
    )


def is_uniform(kernel: TileKernel, value: Any) -> bool:
    """Return whether a value is known to be the same in all threads of a CTA."""
    return all(_is_known(kernel, leaf) for leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what a value is computed from by arithmetic alone."""
    pending, seen = [value], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, ir.BlockArgument) or not value.owner.name.startswith(_COMPUTES):
            yield value
        else:
            pending.extend(value.owner.operands)


def _is_thread_number(kernel: TileKernel, leaf: Any) -> bool:
    if isinstance(leaf, ir.BlockArgument):
        return bool(leaf.owner == kernel.body) and 3 <= leaf.arg_number < 6
    return bool(leaf.owner.name.startswith(_THREAD_IDS))


def _is_known(kernel: TileKernel, leaf: Any) -> bool:
    """Return whether a value that is not computed by arithmetic is known to be uniform."""
    if _is_thread_number(kernel, leaf):
        return False
    if isinstance(leaf, ir.BlockArgument):
        around = leaf.owner.owner
        if around.name == "scf.for" and leaf.arg_number == 0:
            return all(is_uniform(kernel, bound) for bound in list(around.operands)[:3])
        return bool(around.name in ("gpu.launch", "func.func"))
    op = leaf.owner
    if op.name == dialect.LOAD:  # of an element: a scalar
        return all(is_uniform(kernel, i) for i in list(op.operands)[1:])
    return bool(
        op.name.startswith(
            ("arith.constant", "gpu.block_id", "gpu.cluster_id", "gpu.grid_dim", "memref.dim")
        )
    )
