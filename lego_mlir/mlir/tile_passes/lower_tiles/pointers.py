"""Addresses in shared memory, which a layout gives, and the pointers of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import TENSOR_MAP_BYTES
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build

SHARED, CLUSTER = 3, 7
"""Address spaces of LLVM's NVPTX back end: shared memory of the CTA, and of the cluster."""

_DYNAMIC = -(1 << 31)
"""Marks an index of llvm.getelementptr that is an operand."""


def address(buffer: Any, layout: Layout, index: Sequence[Any], shift: int = 0) -> Any:
    """Build the address of an element, an i32.

    Args:
        buffer: a memref of one dimension in shared memory.
        layout: of its elements.
        index: of the element, a value a dimension.
        shift: bytes to add.
    """
    i32 = build.i32()
    base = build.make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer)
    start = build.make("arith.index_cast", i32, base)
    offset = dialect.apply(layout_attribute(layout), index)
    size = bytes_of(ir.MemRefType(buffer.type).element_type)
    distance = build.binary(
        "muli", build.make("arith.index_cast", i32, offset), build.constant(i32, size)
    )
    at = build.binary("addi", start, distance)
    return build.binary("addi", at, build.constant(i32, shift)) if shift else at


def as_pointer(at: Any) -> Any:
    """Build the pointer to the CTA's shared memory of an address, an i32."""
    return build.make("llvm.inttoptr", ir.Type.parse(f"!llvm.ptr<{SHARED}>"), at)


def cluster_pointer() -> Any:
    """Return the type of a pointer to the cluster's shared memory."""
    return ir.Type.parse(f"!llvm.ptr<{CLUSTER}>")


def in_cluster(pointer: Any) -> Any:
    """Cast a pointer to the CTA's shared memory to one to the cluster's."""
    return build.make("llvm.addrspacecast", cluster_pointer(), pointer)


def tensor_map_at(first: Any, number: Any) -> Any:
    """Build the pointer to one of several tensor maps, which lie one behind the other.

    Args:
        first: the pointer to the first one.
        number: of the map, an index.
    """
    kind = ir.Type.parse(f"!llvm.array<{TENSOR_MAP_BYTES} x i8>")
    at = build.make("arith.index_cast", build.i32(), number)
    return build.make(
        "llvm.getelementptr",
        first.type,
        first,
        at,
        rawConstantIndices=ir.DenseI32ArrayAttr.get([_DYNAMIC]),
        elem_type=ir.TypeAttr.get(kind),
    )
