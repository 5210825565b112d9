"""Queries and changes of a kernel's structure: launches, loops, clones, backward slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from operator import mul
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import PassContext


def body_of(launch: Any) -> Any:
    """Return the body block of a gpu.launch."""
    return launch.regions[0].blocks[0]


def known_size(value: Any, pass_context: PassContext) -> int | None:
    """Return the number of a value that is a constant or a layout's size, else `None`."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
        return ir.IntegerAttr(op.attributes["value"]).value  # type: ignore[no-any-return]
    if op.name not in (dialect.SIZE, dialect.DIM):
        return None
    layout = pass_context.layouts.of(op)
    if op.name == dialect.SIZE:
        size = layout.size
    else:
        size = layout.dims[dialect.dim_of(op)]
    return size if isinstance(size, int) else None


def known_divisor(value: Any, pass_context: PassContext) -> int:
    """Return a number that divides a size, the size itself if it is known; 1 if nothing is."""
    number = known_size(value, pass_context)
    if number is not None or isinstance(value, ir.BlockArgument):
        return 1 if number is None else number
    join = _DIVISORS.get(value.owner.name)
    if join is None:
        return 1
    return join(*(known_divisor(operand, pass_context) for operand in value.owner.operands))


_DIVISORS: dict[str, Callable[[int, int], int]] = {
    "arith.muli": mul,
    "arith.addi": gcd,
    "arith.minsi": gcd,
    "arith.maxsi": gcd,
}


def set_launch_size(launch: Any, which: int, size: Any) -> None:
    """Set one of the six sizes of a launch to a number or a value: grid, then block, x, y, z."""
    first = next(iter(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])))
    with ir.InsertionPoint(launch), launch.location:
        if isinstance(size, int):
            size = arith.ConstantOp(ir.IndexType.get(), size).result
        launch.operands[first + which] = size


def move(operations: Iterable[Any], before: Any) -> None:
    """Move operations, in order, right before another."""
    for op in operations:
        op.move_before(before)


def clone(op: Any, values: dict[Any, Any]) -> Any:
    """Clone an operation at the current insertion point, with new operands.

    Args:
        op: the operation.
        values: the new value of each value that it uses, also inside; its results are added.
    """
    copy = op.clone()
    for inner in (copy, *_inside(copy)):
        for number, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[number] = values[operand]
    values.update(zip(op.results, copy.results, strict=True))
    return copy


def operands_of(op: Any) -> list[Any]:
    """Return the operands of an operation and of the operations inside it."""
    return [value for inner in (op, *_inside(op)) for value in inner.operands]


def _inside(op: Any) -> Iterable[Any]:
    """Return the operations inside `op`; most have none."""
    return operations_in(op) if len(op.regions) else ()


def backward_slice(values: Sequence[Any], block: Any, available: Sequence[Any] = ()) -> list[Any]:
    """Return the backward slice of `values` inside `block`, in order.

    Args:
        values: the roots of the slice.
        block: the block.
        available: operations to leave out, with those that only they need.
    """
    found: list[Any] = []
    stack = list(values)
    operations = [op.operation for op in block.operations if op.operation not in available]
    inside = {value: op for op in operations for value in op.results}
    while stack:
        op = inside.get(stack.pop())
        if op is not None and op not in found:
            found.append(op)
            stack.extend(operands_of(op))
    return [op.operation for op in block.operations if op.operation in found]


def depends_on(value: Any, other: Any) -> bool:
    """Return whether `value` is `other` or is computed from it."""
    if value == other:
        return True
    if isinstance(value, ir.BlockArgument):
        return False
    return any(depends_on(operand, other) for operand in operands_of(value.owner.operation))


def is_zero(value: Any) -> bool:
    """Return whether a vector is a constant of zeros."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    attribute = ir.DenseElementsAttr(value.owner.attributes["value"])
    return attribute.is_splat and float(attribute.get_splat_value().value) == 0.0


def is_elementwise(op: Any) -> bool:
    """Return whether each element of the result depends on the operands' elements at its index."""
    dialect = op.name.partition(".")[0]
    return (
        dialect in ("arith", "math")
        and op.name != "arith.constant"
        and len(op.results) == 1
        and isinstance(op.results[0].type, ir.VectorType)
    )


def keep_rolled(loop: Any) -> None:
    """Mark a loop so that LLVM and the assembler do not unroll it."""
    loop.attributes["llvm.loop_annotation"] = ir.Attribute.parse(
        "#llvm.loop_annotation<unroll = <disable = true>>"
    )
