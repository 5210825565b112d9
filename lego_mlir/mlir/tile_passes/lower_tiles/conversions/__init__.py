"""Conversions of tiles from one distributed layout to another, by their plans.

`convert` takes the road that the plan names; `exchanges` has shuffles, `shared_memory` stores and
loads. What a plan is stands in `analysis.distributed.conversions`.
"""

from lego_mlir.mlir.tile_passes.lower_tiles.conversions.roads import convert

__all__ = ["convert"]
