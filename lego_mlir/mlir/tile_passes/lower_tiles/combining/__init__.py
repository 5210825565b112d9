"""Reductions, scans and sorts of fragments, by their plans, and what they combine elements by."""

from lego_mlir.mlir.tile_passes.lower_tiles.combining.combine import Combine, by_kind, by_region
from lego_mlir.mlir.tile_passes.lower_tiles.combining.reduce_scatter import reduce_scatter
from lego_mlir.mlir.tile_passes.lower_tiles.combining.reductions import reduce_tiles
from lego_mlir.mlir.tile_passes.lower_tiles.combining.scans import scan_tiles
from lego_mlir.mlir.tile_passes.lower_tiles.combining.sorts import sort_tiles

__all__ = [
    "Combine",
    "by_kind",
    "by_region",
    "reduce_scatter",
    "reduce_tiles",
    "scan_tiles",
    "sort_tiles",
]
