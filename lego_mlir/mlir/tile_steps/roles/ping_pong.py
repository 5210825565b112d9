"""`transform_lego.ping_pong`: two warpgroups compute whole tiles in turns.

    "lego.role"() ({
      scf.for %t = ... {
        %a = "lego.wait"(...)
        %d = scf.for %i ... { "lego.wait"(...) "lego.dot_async"(...) ... }
        %x = "lego.dot_wait"(%d)
        "lego.acquire"(%ring, ...) "lego.put"(%ring, ..., %x) "lego.commit"(%ring, ...)
      }
    }) {name = "consumer", first_warp = 0, warps = 4}

becomes

    "lego.role"() ({
      scf.for %t = ... {
        "lego.turn_begin"() {groups = 2}
        %a = "lego.wait"(...)
        %d = scf.for %i ... { "lego.wait"(...) "lego.dot_async"(...) ... }
        "lego.turn_end"() {groups = 2}
        %x = "lego.dot_wait"(%d)
        "lego.turn_begin"() {groups = 2, order = 1}
        "lego.acquire"(%ring, ...) "lego.put"(%ring, ..., %x) "lego.commit"(%ring, ...)
        "lego.turn_end"() {groups = 2, order = 1}
      }
    }) {name = "consumer", first_warp = 0, warps = 8, teams = 2}

So the tensor cores multiply for one warpgroup while the other one stores its tile. Tiles are put in
turns, too: both warpgroups use one ring, in the order of the tiles.

What warps exchange through shared memory, as to convert a tile, needs memory for each warpgroup.

The step comes behind `split_roles`, and behind what begins dots asynchronously. The kernel is
persistent, and one warpgroup holds its tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_WARPS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.modules import body_of, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import set_size
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_steps.kernels import (
    following,
    kernels_of,
    operations_of,
)

_TEAMS = 2

_MULTIPLIES = (pipelines.WAIT, pipelines.DOT_ASYNC)
_PUTS = (pipelines.ACQUIRE, pipelines.PUT, pipelines.COMMIT)
"""What stands in turns of each order: what multiplies, and what puts tiles into rings."""

_X_THREADS = 3
"""Which of a launch's six sizes is the number of threads along x."""


@transform("ping_pong")
def ping_pong(step: TransformStep) -> list[list[Any]]:
    """Let two warpgroups compute the tiles of a persistent kernel in turns; 0 for no change."""
    if not step.number("ping_pong", 1):
        return []
    for kernel in kernels_of(step):
        roles = [op for op in operations_in(kernel.launch) if op.name == pipelines.ROLE]
        loop = _loop_of(step, kernel, roles)
        _take_turns(step, loop)
        pipelines.deal_to_teams(roles[0], _TEAMS)
        more = (_TEAMS - 1) * kernel.warps
        for role in roles[1:]:
            pipelines.move_role(role, pipelines.role_warps(role).start + more)
        set_size(kernel.launch, _X_THREADS, (kernel.launch_warps + more) * WARP_THREADS)
    return []


def _loop_of(step: TransformStep, kernel: TileKernel, roles: list[Any]) -> Any:
    """Return the loop over tiles of the first role.

    Raises:
        LegoError: there is none, or its iterations need one another, or more than a warpgroup.
    """
    if not roles:
        raise step.error(
            "the kernel has no roles",
            kernel.launch,
            hint="transform_lego.split_roles comes before this step",
        )
    if kernel.warps != WARPGROUP_WARPS:
        raise step.error(
            f"tiles are held by {kernel.warps} warps, and each warpgroup computes whole tiles",
            kernel.launch,
            hint=f"launch {WARPGROUP_WARPS} warps; {step.option('ping_pong', 0)}",
        )
    loops = [op for op in operations_of(body_of(roles[0])) if op.name == "scf.for"]
    if len(loops) != 1 or list(loops[0].results):
        raise step.error(
            "the consumer has no loop over tiles that are computed one by one",
            roles[0],
            hint="transform_lego.persistent comes first, and no step that stores a tile during the "
            "next one",
        )
    return loops[0]


def _take_turns(step: TransformStep, loop: Any) -> None:
    """Put what waits for operands and begins dots, and what puts tiles into rings, into turns.

    Raises:
        LegoError: a loop's body begins no dots.
    """
    for order, names in enumerate((_MULTIPLIES, _PUTS)):
        found = [op for op in operations_of(body_of(loop)) if _has(op, names)]
        if found:
            with ir.InsertionPoint(found[0]), loop.location:
                pipelines.turn_begin(_TEAMS, order)
            with ir.InsertionPoint(following(found[-1])), loop.location:
                pipelines.turn_end(_TEAMS, order)
        elif names is _MULTIPLIES:
            raise step.error(
                "this loop over tiles begins no dots",
                loop,
                hint="transform_lego.overlap_iterations comes before this step",
            )


def _has(op: Any, names: Sequence[str]) -> bool:
    """Return whether an operation, or one inside of it, has one of some names."""
    return any(inner.name in names for inner in (op, *operations_in(op)))
