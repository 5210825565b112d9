"""Barriers of the threads that execute an operation."""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tile_ir.roles import role_around

_ROLE_BARRIER = 1
"""The number of the barrier of a role's threads; 0 is that of the CTA."""

_TEAM_BARRIER = 8
"""The number of the barrier of the first team of a role; those before are of turns."""


def mark_team(number: Any) -> None:
    """Mark an i32, made at the begin of a role, as the number of the thread's team."""
    number.owner.attributes[dialect.TEAM] = ir.UnitAttr.get()


def team_in(role: Any) -> Any:
    """Return the number of the thread's team, an i32, in a role with teams."""
    operations = (op.operation for op in role.regions[0].blocks[0].operations)
    return next(op.results[0] for op in operations if dialect.TEAM in op.attributes)


def make_barrier(op: Any) -> None:
    """Build a barrier of the threads that execute an operation: the CTA's, or those of a role."""
    role = role_around(op)
    if role is None:
        ir.Operation.create("gpu.barrier")
        return
    teams = pipelines.role_teams(role)
    threads = len(pipelines.role_warps(role)) // teams * WARP_THREADS
    i32 = ir.IntegerType.get_signless(32)
    values = [_ROLE_BARRIER if teams == 1 else _TEAM_BARRIER, threads]
    number, count = (
        ir.Operation.create(
            "arith.constant", results=[i32], attributes={"value": ir.IntegerAttr.get(i32, n)}
        ).result
        for n in values
    )
    if teams > 1:
        operands = [number, team_in(role)]
        number = ir.Operation.create("arith.addi", results=[i32], operands=operands).result
    nvvm.barrier(number, count)
