"""Copies by multicast: CTAs of a cluster load the same tile, each a part of it for all of them.

Such a CTA waits for the others of its cluster. None waits forever: all execute the same operations
on the ring, as often and in the same order, and one of them alone does not wait in a circle
(`rings.runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.tile_ir.cluster_values import ClusterValues
from lego_mlir.mlir.tile_ir.kernels import TileKernel


def check_multicast(kernel: TileKernel, inside: Sequence[Any]) -> None:
    """Check the copies that are made by multicast, of a kernel with these operations.

    Raises:
        LegoError: at the operation that is wrong, or not proven right.
    """
    copies = [op for op in inside if pipelines.is_multicast(op)]
    if not copies:
        return
    if not kernel.has_own_programs or kernel.cluster < 2:
        _fail(
            kernel,
            copies[0],
            "in a kernel without clusters whose CTAs run programs of their own",
            "transform_lego.persistent makes them: {cluster = 2 : i64}",
        )
    values = ClusterValues(kernel)
    for copy in copies:
        ring, _, _, *origin = list(copy.operands)
        if pipelines.engine_of(copy) != "tma":
            _fail(kernel, copy, f"by '{pipelines.engine_of(copy)}'", "TMA copies to clusters")
        masks, common = pipelines.multicast_masks(copy), values.masks(origin)
        if len(masks) != kernel.cluster or any(
            not mask >> rank & 1 or mask != masks[other] or not common[rank] >> other & 1
            for rank, mask in enumerate(masks)
            for other in range(kernel.cluster)
            if mask >> other & 1 or other == rank
        ):
            _fail(
                kernel,
                copy,
                "of a tile that is not known to be the same in the CTAs of a cluster that load it "
                "together",
                "its indices may depend on the number of the cluster, and on loops",
            )
        for op in (use.owner.operation for use in ring.uses):
            around = values.uncommon_control(op)
            if around is not None:
                _fail(
                    kernel,
                    around,
                    f"around '{op.name}' of a ring that is filled by multicast",
                    "all CTAs of a cluster execute the operations on such a ring equally often: "
                    "give the loop bounds that they have in common",
                )
            if op.name == copy.name and pipelines.multicast_masks(op) != masks:
                _fail(kernel, op, "by another multicast", "all copies into a ring are alike")


def _fail(kernel: TileKernel, op: Any, message: str, hint: str) -> NoReturn:
    raise kernel.source.error(f"'{op.name}' {message}", op.location, hint=hint)
