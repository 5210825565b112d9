"""What uses a buffer in memory, directly or through views and addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lego_mlir.mlir.bindings import ir

_ADDRESSES = (
    "memref.extract_aligned_pointer_as_index",
    "arith.",
    "llvm.inttoptr",
    "llvm.getelementptr",
    "llvm.addrspacecast",
    "nvvm.mapa",
)
"""Prefixes of the names of operations that compute an address from a buffer or an address."""


def users_of(buffer: Any) -> Iterator[Any]:
    """Yield the operations that use a buffer, a view of it, or an address in it."""
    pending, seen = [buffer], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.owner.operation
            yield op
            is_address = op.name.startswith(_ADDRESSES)
            pending += [r for r in op.results if is_address or isinstance(r.type, ir.MemRefType)]


def ancestor_in(block: Any, op: Any) -> Any:
    """Return the operation of `block` that is `op` or contains it."""
    while op.block != block:
        op = op.parent.operation
    return op


def last_inside(op: Any) -> Any:
    """Return the last operation inside of one in the order of the text, itself if there is none."""
    blocks = [block for region in op.regions for block in region.blocks]
    return last_inside(blocks[-1].operations[-1].operation) if blocks else op
