"""Give each team of a role its own part of the shared memory through which its warps exchange.

    %a = memref.view %memory[%c0] {lego.team_bytes = 4096 : i64, ...}
    "lego.role"() ({ %team = ...; use(%a) }) {teams = 2, ...}

becomes

    "lego.role"() ({ %team = ...; %own = memref.view %memory[%c0 + %team * 4096]; use(%own) })

`plan_shared_memory` has left room for all teams. Until this pass the memory is that of one, as the
barriers see it.
"""

from __future__ import annotations

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_around
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.role_barriers import team_in


def divide_memory(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    index = ir.IndexType.get()
    views = [op.operation for op in kernel.body.operations if dialect.TEAM_BYTES in op.attributes]
    for view in views:
        role = next(r for use in view.results[0].uses if (r := role_around(use.owner.operation)))
        distance = ir.IntegerAttr(view.attributes[dialect.TEAM_BYTES]).value
        team = team_in(role)
        with ir.InsertionPoint(team.owner), view.location:
            here = ir.Operation.create("gpu.barrier")  # what is made stands behind the number
        team.owner.move_before(here)
        with ir.InsertionPoint(here), view.location:
            number = build.make("arith.index_cast", index, team)
            ahead = build.binary("muli", number, build.index(distance))
            shift = build.binary("addi", view.operands[1], ahead)
            own = build.make("memref.view", view.results[0].type, view.operands[0], shift)
            own.owner.attributes[dialect.ALIGNMENT] = view.attributes[dialect.ALIGNMENT]
        here.erase()
        view.results[0].replace_all_uses_with(own)
