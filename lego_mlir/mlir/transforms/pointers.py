"""Addresses of shared memory, for the instructions that take pointers and descriptors.

The offset is that of a layout, as everywhere; only the buffer's own address comes to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir.bindings import arith, ir, memref
from lego_mlir.mlir.transforms.tiles import Index, number, offset

SHARED, CLUSTER = 3, 7
"""Address spaces of LLVM's NVPTX back end: a block's shared memory, and a cluster's."""


def address(buffer: Any, layout: Layout, index: Sequence[Index]) -> Any:
    """The address in shared memory of an element, in bytes, as an i32.

    Args:
        buffer: a memref in shared memory.
        layout: of its elements.
        index: of the element.
    """
    i32 = ir.IntegerType.get_signless(32)
    base = memref.ExtractAlignedPointerAsIndexOp(buffer).result
    start = arith.IndexCastOp(i32, base).result
    size = element_bytes(ir.MemRefType(buffer.type).element_type)
    at = offset(layout, index)
    if isinstance(at, int):
        return arith.AddIOp(start, i32_constant(at * size)).result if at else start
    distance = arith.IndexCastOp(i32, at).result
    return arith.AddIOp(start, arith.MulIOp(distance, i32_constant(size)).result).result


def pointer(buffer: Any, layout: Layout, index: Sequence[Index]) -> Any:
    """The same as a pointer to shared memory."""
    return as_pointer(address(buffer, layout, index))


def as_pointer(at: Any, space: int = SHARED) -> Any:
    """An address, an i32, as a pointer to an address space."""
    kind = ir.Type.parse(f"!llvm.ptr<{space}>")
    # Without the bindings' class: loading those of llvm takes as long as compiling a kernel.
    return ir.Operation.create("llvm.inttoptr", results=[kind], operands=[at]).result


def in_cluster(pointer: Any) -> Any:
    """A pointer to the block's shared memory as one to the cluster's."""
    kind = ir.Type.parse(f"!llvm.ptr<{CLUSTER}>")
    return ir.Operation.create("llvm.addrspacecast", results=[kind], operands=[pointer]).result


def i32_constant(n: int) -> Any:
    """A constant of 32 bits."""
    return number(n, ir.IntegerType.get_signless(32))


def element_bytes(element: Any) -> int:
    """The size of an element in bytes."""
    return max(1, int(element.width) // 8)
