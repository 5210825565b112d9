"""Who copies and reads the tiles of rings: one thread, whole warpgroups, or every warp."""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.limits import WARPGROUP_WARPS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_ir.roles import Role, role_of
from lego_mlir.mlir.tile_ir.types import has_tiles, is_shared_tile

_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)


def is_one_thread(role: Role) -> bool:
    """Return whether one thread runs a role."""
    return role.op is not None and dialect.ONE_THREAD in role.op.attributes


def only_copies(role: Any) -> bool:
    """Return whether a lego.role only copies by TMA, for which one thread is enough."""
    of_ring = 0
    for op in operations_in(role):
        of_ring += op.name in pipelines.OF_RING
        match op.name:
            case pipelines.COPY_ASYNC if pipelines.engine_of(op) != "tma":
                return False
            case pipelines.WAIT:
                users = {use.owner.operation for use in op.results[0].uses}
                if users != set(stores_of(op)):
                    return False
            case dialect.STORE if is_shared_tile(op.operands[0]):
                continue
            case dialect.STORE | tiles.SCATTER | dialect.ATOMIC:
                return False
            case _ if has_tiles(op):
                return False
    return of_ring > 0


def stores_of(wait: Any) -> list[Any]:
    """Return the stores by TMA of the tile that a lego.wait returns."""
    users = [use.owner.operation for use in wait.results[0].uses]
    return [op for op in users if op.name == dialect.STORE]


def late_releases(kernel: TileKernel, waits: list[Any], stages: int) -> int:
    """Return how many stores of tiles begin before that of a tile is waited for.

    One thread stores tiles, and reading a stage takes longer than to begin a store. While there are
    stages for all parts of a tile, those who put them wait for none of these, and all stages but
    one may be read at a time. Of more parts the next one waits for a stage: it must not be released
    only when that part is there.

    Args:
        kernel: the kernel.
        waits: those for the tiles of a ring.
        stages: of the ring.
    """
    if not all(stores_of(op) and is_one_thread(role_of(kernel, op)) for op in waits):
        return 0
    parts = sum(map(_trips, waits))
    return stages - 1 if parts <= stages else max(0, stages - 2)


def _trips(op: Any) -> int:
    """Return the iterations of the loop that an operation is in, if they are known; else 1."""
    around = op.parent.operation
    if around.name != "scf.for":
        return 1
    low, high, stride = map(constant_size, list(around.operands)[:3])
    if low is None or high is None or stride is None:
        return 1
    return -(-(high - low) // stride)


def is_read_by_groups(kernel: TileKernel, wait: Any) -> bool:
    """Return whether only whole warpgroups read a tile, by `wgmma`."""
    pending, users = [wait.results[0]], []
    while pending:
        found = [use.owner.operation for use in pending.pop().uses]
        pending += [op.results[0] for op in found if op.name == tiles.TRANSPOSE]
        users += [op for op in found if op.name != tiles.TRANSPOSE]
    dots = all(op.name in _DOTS for op in users)
    return bool(users) and dots and len(role_of(kernel, wait).warps) % WARPGROUP_WARPS == 0


def arrivals(role: Role, *, by_groups: bool) -> int:
    """Return the arrivals by which a role releases a tile.

    It is one of each warp, or warpgroup if these read together, or of the one thread.
    """
    if is_one_thread(role):
        return 1
    return role.team_warps // (WARPGROUP_WARPS if by_groups else 1)
