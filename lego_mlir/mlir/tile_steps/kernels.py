"""What the steps find in a schedule's handles: kernels on tiles, and loops in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tile_ir.kernels import TileKernel

_LAUNCH, _LOOP = "gpu.launch", "scf.for"


def kernels_of(step: TransformStep) -> list[TileKernel]:
    """Return the kernels of a step's handle.

    Raises:
        LegoError: one of its operations is no gpu.launch.
    """
    for op in step.payload():
        if op.name != _LAUNCH:
            raise step.error(
                f"takes kernels, and this is '{op.name}'", op, hint='ops{["gpu.launch"]}'
            )
    return [_kernel(step, op) for op in step.payload()]


def loops_of(step: TransformStep) -> list[tuple[TileKernel, Any]]:
    """Return the loops of a step's handle, with their kernels.

    Raises:
        LegoError: one of its operations is no scf.for of a kernel.
    """
    found = []
    for op in step.payload():
        launch = op
        while launch is not None and launch.name != _LAUNCH:
            launch = launch.parent and launch.parent.operation
        if op.name != _LOOP or launch is None:
            raise step.error(
                f"takes loops of kernels, and this is '{op.name}'", op, hint='ops{["scf.for"]}'
            )
        found.append((_kernel(step, launch), op))
    return found


def _kernel(step: TransformStep, launch: Any) -> TileKernel:
    context = step.pass_context
    return TileKernel(launch, context.layouts, context.source, context.target)


def operations_of(block: Any) -> list[Any]:
    """Return the operations of a block, as they are now."""
    return [op.operation for op in block.operations]


def has_loops(loop: Any) -> bool:
    """Return whether there are loops in the body of a loop."""
    (block,) = loop.regions[0].blocks
    return any(op.name == _LOOP for op in operations_of(block))


def following(op: Any) -> Any:
    """Return the operation after one in its block."""
    listed = operations_of(op.block)
    return listed[listed.index(op) + 1]


def in_block(op: Any, block: Any) -> Any | None:
    """Return the operation of a block that is or encloses one; `None` if none does."""
    while op is not None and op.block != block:
        op = op.parent and op.parent.operation
        if op is not None and op.name == "func.func":
            return None
    return op


def is_inside(value: Any, op: Any) -> bool:
    """Return whether a value is made inside of an operation, or is an argument of its block."""
    if isinstance(value, ir.BlockArgument):
        at = value.owner.owner.operation
    else:
        at = value.owner.operation.parent
    while at is not None and at.operation.name != "func.func":
        if at.operation == op:
            return True
        at = at.operation.parent
    return False


def users_in(value: Any, block: Any) -> Iterator[Any]:
    """Yield the operations of a block that use a value, also inside of them."""
    for use in value.uses:
        found = in_block(use.owner.operation, block)
        if found is not None:
            yield found


def last_of(operations: list[Any]) -> Any:
    """Return the last of operations of one block."""
    found = operations[0]
    for op in operations[1:]:
        if found != op and found.is_before_in_block(op):
            found = op
    return found


def first_of(operations: list[Any]) -> Any:
    """Return the first of operations of one block."""
    found = operations[0]
    for op in operations[1:]:
        if found != op and op.is_before_in_block(found):
            found = op
    return found


def integer(value: Any) -> int | None:
    """Return the number that a constant is, `None` for another value."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
