"""The structure of a kernel as transforms see and change it: launches, loops, copies of ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import PassContext


def body_of(launch: Any) -> Any:
    """The block of a gpu.launch."""
    return launch.regions[0].blocks[0]


def known_size(value: Any, pass_context: PassContext) -> int | None:
    """The number that a value is: a constant, or a layout's size; `None` where it is neither."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
        return ir.IntegerAttr(op.attributes["value"]).value  # type: ignore[no-any-return]
    if op.name not in ("lego.size", "lego.dim"):
        return None
    layout = pass_context.layouts(op.attributes["layout"], op.location)
    if op.name == "lego.size":
        size = layout.size
    else:
        size = layout.dims[ir.IntegerAttr(op.attributes["dim"]).value]
    return size if isinstance(size, int) else None


def set_launch_size(launch: Any, which: int, size: int) -> None:
    """Change one of the six sizes of a launch: grid x, y, z, then block x, y, z."""
    first = next(iter(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])))
    with ir.InsertionPoint(launch), launch.location:
        launch.operands[first + which] = arith.ConstantOp(ir.IndexType.get(), size).result


def move(operations: Iterable[Any], before: Any) -> None:
    """Move operations, in order, to right before another."""
    for op in operations:
        op.move_before(before)


def clone(op: Any, values: dict[Any, Any]) -> Any:
    """A copy of an operation at the current insertion point, on what stands for its operands.

    Args:
        op: an operation.
        values: what stands for which value, inside of it too; the results are added.
    """
    copy = op.clone()
    for inner in (copy, *_inside(copy)):
        for number, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[number] = values[operand]
    values.update(zip(op.results, copy.results, strict=True))
    return copy


def operands_of(op: Any) -> list[Any]:
    """The operands of an operation and of those inside of it."""
    return [value for inner in (op, *_inside(op)) for value in inner.operands]


def _inside(op: Any) -> Iterable[Any]:
    """The operations inside of one, most of which have none."""
    return operations_in(op) if len(op.regions) else ()


def backward_slice(wanted: Sequence[Any], block: Any, available: Sequence[Any] = ()) -> list[Any]:
    """The operations of a block that some of its values are computed by, in order.

    Args:
        wanted: the values.
        block: the block.
        available: operations whose results are there already.
    """
    found: list[Any] = []
    stack = list(wanted)
    operations = [op.operation for op in block.operations if op.operation not in available]
    inside = {value: op for op in operations for value in op.results}
    while stack:
        op = inside.get(stack.pop())
        if op is not None and op not in found:
            found.append(op)
            stack.extend(operands_of(op))
    return [op.operation for op in block.operations if op.operation in found]


def depends_on(value: Any, other: Any) -> bool:
    """Whether a value is another one or is computed from it."""
    if value == other:
        return True
    if isinstance(value, ir.BlockArgument):
        return False
    return any(depends_on(operand, other) for operand in operands_of(value.owner.operation))


def is_zero(value: Any) -> bool:
    """Whether a vector is a constant of zeros."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    attribute = ir.DenseElementsAttr(value.owner.attributes["value"])
    return attribute.is_splat and float(attribute.get_splat_value().value) == 0.0


def keep_rolled(loop: Any) -> None:
    """Have LLVM and the assembler leave a loop as it is."""
    loop.attributes["llvm.loop_annotation"] = ir.Attribute.parse(
        "#llvm.loop_annotation<unroll = <disable = true>>"
    )
