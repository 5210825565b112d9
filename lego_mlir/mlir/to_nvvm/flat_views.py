"""Buffers as one line of elements, in the form that converts to the llvm dialect by itself.

    %line = memref.collapse_shape %x [[0, 1]] : memref<64x64xf32> into memref<4096xf32>

becomes

    %line = memref.reinterpret_cast %x to offset: [0], sizes: [4096], strides: [1]
        : memref<64x64xf32> to memref<4096xf32>

MLIR's `expand-strided-metadata` does so, too, and for views of all kinds, but it visits all
operations of a module. It runs where other views are left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import make
from lego_mlir.mlir.launch_sizes.strided import is_dense

_COLLAPSE = "memref.collapse_shape"

EXPANDED = (
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.extract_strided_metadata",
    "memref.subview",
)
"""Operations that do not convert by themselves."""


def flatten_views(operations: Iterable[Any]) -> list[Any]:
    """Rewrite the flat views of dense buffers of known shape.

    Args:
        operations: of a module, which is changed in place; its context is the current one.

    Returns:
        The operations that are left.
    """
    left = []
    for op in operations:
        if op.name != _COLLAPSE or not _is_of_known_shape(op):
            left.append(op)
            continue
        with ir.InsertionPoint(op), op.location:
            line = _with_shape(op.operands[0], ir.MemRefType(op.results[0].type))
        op.results[0].replace_all_uses_with(line)
        op.erase()
    return left


def _is_of_known_shape(view: Any) -> bool:
    """Return whether a view is dense and of known shape, and its buffer, too."""
    kinds = [ir.MemRefType(value.type) for value in (view.operands[0], view.results[0])]
    return all(kind.has_static_shape and is_dense(kind) for kind in kinds)


def _with_shape(buffer: Any, kind: Any) -> Any:
    """Build the view of a dense buffer as one of type `kind`."""
    sizes = list(kind.shape)
    strides = [1] * len(sizes)
    for k in range(len(sizes) - 1, 0, -1):
        strides[k - 1] = strides[k] * sizes[k]
    numbers = ir.DenseI64ArrayAttr
    return make(
        "memref.reinterpret_cast",
        kind,
        buffer,
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        static_offsets=numbers.get([0]),
        static_sizes=numbers.get(sizes),
        static_strides=numbers.get(strides),
    )
