"""The kernel around an operation: its launch, threads and loops."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader, launch_sizes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.structure import known_size

LAUNCH, FUNCTION = "gpu.launch", "gpu.func"
_AXES = "xyz"


def kernels_of(step: TransformStep, operand: int = 0) -> list[Any]:
    """Return the kernels of a handle.

    Raises:
        LegoError: one of its operations is neither a gpu.launch nor a gpu.func.
    """
    found = step.payload(operand)
    for op in found:
        if op.name not in (LAUNCH, FUNCTION):
            raise step.error(f"expected a gpu.launch or gpu.func, found '{op.name}'", op)
    return found


def block_size(step: TransformStep, kernel: Any) -> tuple[int, int, int]:
    """Return the threads of a CTA along x, y and z.

    Raises:
        LegoError: they are not constants.
    """
    known = "known_block_size"
    if kernel.name == LAUNCH:
        sizes = [known_size(size, step.pass_context) for size in launch_sizes(kernel)[3:]]
    elif known in kernel.attributes:
        sizes = list(ir.DenseI32ArrayAttr(kernel.attributes[known]))
    else:
        sizes = []
    if len(sizes) != 3 or None in sizes:
        raise step.error(
            "the number of threads of this kernel is not known",
            kernel,
            hint="launch it with constants"
            if kernel.name == LAUNCH
            else f"set the attribute {known} = array<i32: 128, 1, 1>",
        )
    return cast("tuple[int, int, int]", tuple(sizes))


def thread_count(step: TransformStep, kernel: Any) -> int:
    """Return the number of threads of a CTA.

    Raises:
        LegoError: their number is not known.
    """
    return prod(block_size(step, kernel))


def flat_thread_id(step: TransformStep, kernel: Any) -> Any:
    """Compute the linear thread id in the CTA, x fastest, at the insertion point."""
    x, y, z = block_size(step, kernel)
    if kernel.name == LAUNCH:
        ids = list(kernel.regions[0].blocks[0].arguments)[3:6]
    else:
        axes = (ir.Attribute.parse(f"#gpu<dim {axis}>") for axis in _AXES)
        ids = [_thread_id(axis) for axis in axes]
    if y == z == 1:
        return ids[0]
    return accesses.apply(OrderBy(Row(z, y, x)), ids[::-1])


def _thread_id(axis: Any) -> Any:
    return ir.Operation.create(
        "gpu.thread_id", results=[ir.IndexType.get()], attributes={"dimension": axis}
    ).result


def barrier() -> None:
    """Make a barrier of the CTA at the insertion point."""
    ir.Operation.create("gpu.barrier")


def loop_around(op: Any) -> Any:
    """Return the innermost scf.for of the kernel that contains `op`, else `None`."""
    loops = scope_of(op).loops
    return loops[-1] if loops and loops[-1].name == "scf.for" else None


def iteration(loop: Any) -> Any:
    """Compute the iteration number of an scf.for, from 0, at the insertion point."""
    variable = loop.regions[0].blocks[0].arguments[0]
    lower, _, step = list(loop.operands)[:3]
    if constant_value(lower) != 0:
        variable = arith.SubIOp(variable, lower).result
    return variable if constant_value(step) == 1 else arith.DivUIOp(variable, step).result


def constant_value(value: Any) -> int | None:
    """Return the constant that an index value is known to be, else `None`."""
    x = IndexReader().read(value)
    return x if isinstance(x, int) else None
