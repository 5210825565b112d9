"""`transform_lego.persist`: persistent CTAs, each of which computes several tiles in a loop.

    gpu.launch blocks(%b, …) in (%tiles, …) { body(%b) }

becomes, with `persistent_ctas = 132`,

    gpu.launch blocks(%b, …) in (%c132, …) { scf.for %t = %b to %tiles step %c132 { body(%t) } }

Each CTA runs its prologue once, and the next tile's loads run while a tile is stored. A launch with
no more CTAs than `persistent_ctas` is unchanged. If only the launch knows the number of tiles, it
launches no more CTAs than there are:

    %ctas = arith.minsi %tiles, %c132
    gpu.launch blocks(%b, …) in (%ctas, …) { scf.for %t = %b to %tiles step %c132 { body(%t) } }

`persistent_ctas = 0` changes nothing.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import constant
from lego_mlir.mlir.tiles.kernels import barrier
from lego_mlir.mlir.tiles.structure import body_of, known_size, move, set_launch_size


@transform("persist")
def persist(step: TransformStep) -> list[list[Any]]:
    """Rewrite launches so that at most `persistent_ctas` CTAs compute all tiles."""
    persistent_ctas = step.number("persistent_ctas")
    if persistent_ctas == 0:
        return []
    for launch in step.payload():
        if launch.name != "gpu.launch":
            raise step.error(f"looked for a gpu.launch, found '{launch.name}'", launch)
        sizes = [known_size(size, step.pass_context) for size in launch_sizes(launch)[:3]]
        tiles = launch_sizes(launch)[0]
        if sizes[1:] != [1, 1]:
            raise step.error(
                f"looked for a grid along x, found {sizes}",
                launch,
                hint="use a one-dimensional grid: CTA ids along x, mapped to tiles by a layout",
            )
        with ir.InsertionPoint(launch), launch.location:
            most = constant(persistent_ctas)
            if sizes[0] is None:
                _loop(launch, tiles, persistent_ctas, arith.MinSIOp(tiles, most).result)
            elif sizes[0] > persistent_ctas:
                _loop(launch, constant(sizes[0]), persistent_ctas, most)
    return []


def _loop(launch: Any, all_tiles: Any, persistent_ctas: int, ctas: Any) -> None:
    """Make the loop over tiles.

    Args:
        launch: the launch.
        all_tiles: the number of tiles, a value of the host.
        persistent_ctas: the step of the loop.
        ctas: the CTAs to launch, a value of the host.
    """
    body = body_of(launch)
    cta_id, grid = body.arguments[0], body.arguments[6]
    inside = [op.operation for op in body.operations][:-1]
    with ir.InsertionPoint.at_block_begin(body), launch.location:
        loop = scf.ForOp(cta_id, all_tiles, constant(persistent_ctas))
        with ir.InsertionPoint(loop.body):
            end = scf.YieldOp([]).operation
        move(inside, end)
        if any(op.name == dialect.ALLOC for op in inside):
            with ir.InsertionPoint(end):
                barrier()  # the next tile's writes must follow the reads of this one
    for use in list(cta_id.uses):
        # The loop's lower bound stays the CTA's id.
        if use.owner.operation != loop.operation:
            use.owner.operation.operands[use.operand_number] = loop.induction_variable
    grid.replace_all_uses_with(all_tiles)
    for op in list(operations_in(loop.operation)):
        stands_for = {"gpu.block_id": loop.induction_variable, "gpu.grid_dim": all_tiles}
        if op.name in stands_for and "dim x" in str(op.attributes["dimension"]):
            op.results[0].replace_all_uses_with(stands_for[op.name])
    set_launch_size(launch, 0, ctas)
