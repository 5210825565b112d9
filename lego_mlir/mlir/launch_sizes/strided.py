"""Buffers with strides of their own, which are arguments of the host function.

%x: memref<?x64xf32, strided<[?, 1]>>
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir, memref

ANY_SIZE = (1 << 31) - 1
"""The size in the type of an address, which says nothing: one that 32 bits hold."""


def is_dense(kind: Any) -> bool:
    """Return whether a memref type is plain row-major memory, without a layout map."""
    with kind.context:
        identity = ir.AffineMap.get_identity(kind.rank)
    return isinstance(kind.layout, ir.AffineMapAttr) and kind.affine_map == identity


def evenly_spaced(kind: Any) -> tuple[int, int] | None:
    """Return stride and offset of a memref whose row-major order has one stride, else `None`."""
    if not isinstance(kind.layout, ir.StridedLayoutAttr):
        return None
    strides, offset = kind.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if dynamic in strides or not kind.has_static_shape:
        return None
    outer_to_inner = zip(strides, strides[1:], kind.shape[1:], strict=False)
    if any(outer != inner * n for outer, inner, n in outer_to_inner):
        return None
    return strides[-1], offset


def has_strides(buffer: Any) -> bool:
    """Return whether a buffer is an argument whose elements lie at several distances."""
    if not isinstance(buffer, ir.BlockArgument) or not isinstance(buffer.type, ir.MemRefType):
        return False
    kind = ir.MemRefType(buffer.type)
    if not isinstance(kind.layout, ir.StridedLayoutAttr) or kind.get_strides_and_offset()[1] != 0:
        return False
    if evenly_spaced(kind) is not None:
        return False
    return bool(buffer.owner.owner.operation.name == "func.func")


def address_type(kind: Any) -> Any:
    """Return the type of the address of a buffer's first element: a buffer of one dimension."""
    return ir.MemRefType.get([ANY_SIZE], kind.element_type, memory_space=kind.memory_space)


def address_of(buffer: Any) -> Any:
    """Build the address of a buffer."""
    kind = address_type(ir.MemRefType(buffer.type))
    return memref.ReinterpretCastOp(
        kind,
        buffer,
        offsets=[],
        sizes=[],
        strides=[],
        static_offsets=[0],
        static_sizes=[ANY_SIZE],
        static_strides=[1],
    ).result
