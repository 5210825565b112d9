"""Barriers of the threads that execute an operation."""

from __future__ import annotations

from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tile_ir.roles import role_around

_ROLE_BARRIER = 1
"""The number of the barrier of a role's threads; 0 is that of the CTA."""


def make_barrier(op: Any) -> None:
    """Build a barrier of the threads that execute an operation: the CTA's, or those of a role."""
    role = role_around(op)
    if role is None:
        ir.Operation.create("gpu.barrier")
        return
    if pipelines.role_teams(role) > 1:
        raise LegoError(
            f"'{op.name}' needs a barrier of threads that several warpgroups of ping-pong execute"
        )
    threads = len(pipelines.role_warps(role)) * WARP_THREADS
    i32 = ir.IntegerType.get_signless(32)
    values = [ir.IntegerAttr.get(i32, n) for n in (_ROLE_BARRIER, threads)]
    made = [
        ir.Operation.create("arith.constant", results=[i32], attributes={"value": value})
        for value in values
    ]
    nvvm.barrier(*(op.result for op in made))
