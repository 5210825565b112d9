"""The kernel around an operation: its launch, threads and loops."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.schedule.transform_step import TransformStep

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


def barrier() -> None:
    """Make a barrier of the CTA at the insertion point."""
    ir.Operation.create("gpu.barrier")


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
