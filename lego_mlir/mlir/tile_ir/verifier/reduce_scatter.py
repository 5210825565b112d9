"""Reductions over a cluster: who takes part, and that all CTAs do so equally often.

CTAs that run programs of their own meet in a lego.reduce_scatter. Each waits for the others, so a
CTA that does not come lets its cluster wait forever.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.dialect.pipeline_operations import role_teams, role_warps
from lego_mlir.mlir.tile_ir.cluster_values import ClusterValues
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.roles import role_around
from lego_mlir.mlir.tile_ir.types import shape_of


def check_reduce_scatters(kernel: TileKernel, found: list[Any]) -> None:
    """Check the reductions over a cluster of a kernel.

    Args:
        kernel: the kernel.
        found: its operations lego.reduce_scatter.

    Raises:
        LegoError: at the operation that is wrong, or not proven right.
    """
    if not found:
        return
    if not kernel.has_own_programs or kernel.cluster < 2:
        raise kernel.source.error(
            f"'{tiles.REDUCE_SCATTER}' in a kernel without clusters whose CTAs run programs of "
            "their own",
            found[0].location,
            hint="launch it with {lego.cluster = 2 : i64, lego.own_programs}; in Python "
            "@lg.kernel(cluster=2, own_programs=True)",
        )
    values = ClusterValues(kernel)
    for op in found:
        _check(kernel, op, values)


def _check(kernel: TileKernel, op: Any, values: ClusterValues) -> None:
    dim = tiles.dim_of(op)
    size, part = shape_of(op.operands[0])[dim], shape_of(op.results[0])[dim]
    wrong = None
    if part * kernel.cluster != size:
        wrong = (
            f"has slices of {part} of the {size} elements along dimension {dim}, in a cluster of "
            f"{kernel.cluster} CTAs",
            "each CTA gets one of as many slices as the cluster has CTAs",
        )
    elif not values.is_rank(op.operands[1]):
        wrong = (
            "of a number that is not known to be the rank of the CTA in its cluster",
            "it is the remainder of the CTA's number along x by the size of the cluster",
        )
    around = values.uncommon_control(op)
    if wrong is None and around is not None:
        wrong = (
            f"inside of '{around.name}', which the CTAs of a cluster may not execute alike",
            "all CTAs of a cluster execute it equally often: put it behind, or give the loop "
            "bounds that they have in common",
        )
    role = role_around(op)
    if wrong is None and role is not None and not _holds_tiles(kernel, role):
        wrong = (
            "in a role, or team, of a part of the warps that hold the tiles",
            "one role of all these warps executes it; without ping-pong",
        )
    if wrong is not None:
        message, hint = wrong
        raise kernel.source.error(f"'{op.name}' {message}", op.location, hint=hint)


def _holds_tiles(kernel: TileKernel, role: Any) -> bool:
    """Return whether the warps of a role together hold the kernel's tiles."""
    return role_teams(role) == 1 and role_warps(role) == range(kernel.warps)
