"""Addresses in shared memory, for instructions that take pointers and descriptors.

An address is the buffer's address plus a layout's offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import TENSOR_MAP_BYTES
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tiles.accesses import Index, number, offset

SHARED, CLUSTER = 3, 7
"""Address spaces of LLVM's NVPTX back end: shared memory of the CTA, and of the cluster."""

_DYNAMIC = -(1 << 31)
"""Marks an index of llvm.getelementptr that is an operand."""


def address(buffer: Any, layout: Layout, index: Sequence[Index]) -> Any:
    """Compute the address of an element in shared memory, in bytes, an i32.

    Args:
        buffer: a memref in shared memory.
        layout: the layout of its elements.
        index: the element's index.
    """
    i32 = ir.IntegerType.get_signless(32)
    base = _made("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer)
    start = _made("arith.index_cast", i32, base)
    size = element_bytes(ir.MemRefType(buffer.type).element_type)
    at = offset(layout, index)
    if isinstance(at, int):
        return _made("arith.addi", i32, start, i32_constant(at * size)) if at else start
    distance = _made("arith.muli", i32, _made("arith.index_cast", i32, at), i32_constant(size))
    return _made("arith.addi", i32, start, distance)


def pointer(buffer: Any, layout: Layout, index: Sequence[Index]) -> Any:
    """Compute the pointer to an element in shared memory."""
    return as_pointer(address(buffer, layout, index))


def as_pointer(at: Any, space: int = SHARED) -> Any:
    """Cast an address, an i32, to a pointer to an address space."""
    kind = ir.Type.parse(f"!llvm.ptr<{space}>")
    return _made("llvm.inttoptr", kind, at)


def beyond(pointer: Any, distance: int) -> Any:
    """Return a pointer `distance` bytes after another; instructions contain the distance."""
    if not distance:
        return pointer
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([distance]),
        "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
    }
    return ir.Operation.create(
        "llvm.getelementptr", results=[pointer.type], operands=[pointer], attributes=attributes
    ).results[0]


def tensor_map_at(first: Any, number: Any) -> Any:
    """Return the pointer to one of several tensor maps, which lie one behind the other.

    Args:
        first: the pointer to the first one.
        number: of the map, an index.
    """
    kind = ir.Type.parse(f"!llvm.array<{TENSOR_MAP_BYTES} x i8>")
    at = _made("arith.index_cast", ir.IntegerType.get_signless(32), number)
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC]),
        "elem_type": ir.TypeAttr.get(kind),
    }
    return ir.Operation.create(
        "llvm.getelementptr", results=[first.type], operands=[first, at], attributes=attributes
    ).results[0]


def in_cluster(pointer: Any) -> Any:
    """Cast a pointer to the CTA's shared memory to one to the cluster's."""
    return _made("llvm.addrspacecast", cluster_pointer(), pointer)


def cluster_pointer() -> Any:
    """Return the type of a pointer to the cluster's shared memory."""
    return ir.Type.parse(f"!llvm.ptr<{CLUSTER}>")


def i32_constant(n: int) -> Any:
    """Make an i32 constant."""
    return number(n, ir.IntegerType.get_signless(32))


def element_bytes(element: Any) -> int:
    """Return the size of an element type in bytes."""
    return max(1, int(element.width) // 8)


def _made(name: str, kind: Any, *operands: Any) -> Any:
    # Without the bindings' classes: importing those of llvm takes as long as compiling a kernel.
    return ir.Operation.create(name, results=[kind], operands=list(operands)).result
