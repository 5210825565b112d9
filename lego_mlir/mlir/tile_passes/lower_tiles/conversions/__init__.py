"""Conversions of tiles from one distributed layout to another, by their plans.

`convert` takes the road that the plan names; `exchanges` has shuffles, `shared_memory` stores and
loads, `clusters` gathers between CTAs. What a plan is stands in `analysis.distributed.conversions`.
"""

from lego_mlir.mlir.tile_passes.lower_tiles.conversions.roads import convert, convert_together

__all__ = ["convert", "convert_together"]
