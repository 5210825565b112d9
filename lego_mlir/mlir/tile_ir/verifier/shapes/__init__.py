"""Shapes, element types and attributes of each operation on tiles.

A module has the checks of a family of operations, `table` those of all. What belongs to pipelines
and to tiles in shared memory is not here but in `verifier.pipelines`.
"""

from lego_mlir.mlir.tile_ir.verifier.shapes.dots import check_dot
from lego_mlir.mlir.tile_ir.verifier.shapes.memory import check_access
from lego_mlir.mlir.tile_ir.verifier.shapes.table import SHAPES

__all__ = ["SHAPES", "check_access", "check_dot"]
