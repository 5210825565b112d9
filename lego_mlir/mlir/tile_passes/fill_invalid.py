"""Make reductions, scans and dots ignore invalid elements, by explicit selects.

Elements of a tile are invalid where it extends past the tensor that it was loaded from, and where a
lego.restrict says so. This pass finds out which; what the operation ignores becomes its identity,
and a store of a tile gets a lego.restrict unless its own bounds drop the same elements.

    %x = "lego.load"(%a, %i, %c0) ...   : ... -> tensor<1x1024xf32>          // of 1000 columns
    %m = "lego.reduce"(%x) {kind = "max", dim = 1 : i64} : ...

becomes

    %x = "lego.load"(%a, %i, %c0) ...
    %valid = "lego.in_range"(%c0) {dim = 1 : i64, size = 1000 : i64} : (index) -> tensor<1x1024xi1>
    %filled = arith.select %valid, %x, %lowest
    %m = "lego.reduce"(%filled) {kind = "max", dim = 1 : i64} : ...
"""

from __future__ import annotations

from lego_mlir.mlir.tile_ir.kernels import TileKernel


def fill_invalid(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
