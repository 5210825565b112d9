"""The structure of kernels: clones with other operands, backward slices, the sizes of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.operations import constant
from lego_mlir.mlir.modules import operations_in


def clone(op: Any, values: dict[Any, Any]) -> Any:
    """Clone an operation at the current insertion point, with new operands.

    Args:
        op: the operation.
        values: the new value of each value that it uses, also inside; its results are added.
    """
    copy = op.clone().operation
    for inner in (copy, *operations_in(copy)):
        for k, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[k] = values[operand]
    values.update(zip(op.results, copy.results, strict=True))
    return copy


def used_by(op: Any) -> list[Any]:
    """Return the values that an operation and those inside of it use."""
    return [x for inner in (op, *operations_in(op)) for x in inner.operands]


def backward_slice(values: Sequence[Any], block: Any) -> list[Any]:
    """Return the operations of `block` that `values` are computed by, in order."""
    found: list[Any] = []
    stack = list(values)
    inside = {value: op.operation for op in block.operations for value in op.results}
    while stack:
        op = inside.get(stack.pop())
        if op is not None and op not in found:
            found.append(op)
            stack.extend(used_by(op))
    return [op.operation for op in block.operations if op.operation in found]


def set_size(launch: Any, which: int, size: Any) -> None:
    """Set one of the six sizes of a launch: grid x, y, z, then CTA x, y, z.

    Args:
        launch: the gpu.launch.
        which: of the sizes.
        size: a number, or an index that the host computes.
    """
    first = next(iter(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])))
    with ir.InsertionPoint(launch), launch.location:
        value = constant(ir.IndexType.get(), size) if isinstance(size, int) else size
        launch.operands[first + which] = value
