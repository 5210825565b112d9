"""Deal the iterations of a role's loop to its teams of warps.

    "lego.role"() ({ scf.for %t = %lo to %hi step %s { body(%t) } }) {warps = 8, teams = 2, ...}

becomes, with %team the number of the warpgroup,

    "lego.role"() ({
      scf.for %t = %lo + %team * %s to %hi step %s * 2 { body(%t) }
    }) {warps = 8, teams = 2, ...}

The numbers of a ring's tiles follow from %t, so they stay right. The pass comes first: the others
see what one team does.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.role_barriers import mark_team


def lower_teams(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    for role in [op.operation for op in kernel.body.operations if op.name == pipelines.ROLE]:
        teams = pipelines.role_teams(role)
        if teams > 1:
            body = role.regions[0].blocks[0]
            (loop,) = (o.operation for o in body.operations if o.name == "scf.for")
            with ir.InsertionPoint.at_block_begin(body), loop.location:
                team = _team(kernel)
            with ir.InsertionPoint(loop), loop.location:
                low, _, stride = list(loop.operands)[:3]
                number = build.make("arith.index_cast", ir.IndexType.get(), team)
                ahead = build.binary("muli", number, stride)
                loop.operands[0] = build.binary("addi", low, ahead)
                loop.operands[2] = build.binary("muli", stride, build.index(teams))


def _team(kernel: TileKernel) -> Any:
    """Build the number of the warpgroup, an i32 that the assembler knows to be uniform."""
    number = build.binary("divui", kernel.launch_thread, build.index(WARPGROUP_THREADS))
    i32 = build.i32()
    word = build.make("arith.index_cast", i32, number)
    lane, last = build.constant(i32, 0), build.constant(i32, WARP_THREADS - 1)
    uniform = nvvm.shuffle(build.constant(i32, -1), word, lane, last)
    mark_team(uniform)
    return uniform
