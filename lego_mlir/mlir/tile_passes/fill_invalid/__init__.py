"""Make operations ignore invalid elements, by explicit selects, `other` and lego.restrict.

Elements of a tile are invalid where it extends past the tensor that it was loaded from, and where a
lego.restrict says so. This pass finds out which (`analysis`), in terms of `conditions`: they begin
as the `bounds` of accesses, operations `transfer` them, and `merging` has those of control flow. It
makes them explicit where an operation ignores invalid elements (`rewriting`, with `masks`): there
they hold what changes nothing.

    %x = "lego.load"(%a, %i, %c0) ...   : ... -> tensor<1x1024xf32>          // of 1000 columns
    %e = math.exp %x
    %s = "lego.reduce"(%e) {kind = "add", dim = 1 : i64} : ...

becomes

    %x = "lego.load"(%a, %i, %c0) ...
    %e = math.exp %x
    %valid = "lego.in_range"(%c0) {dim = 1 : i64, size = 1000 : i64} : (index) -> tensor<1x1024xi1>
    %filled = arith.select %valid, %e, %zeros
    %s = "lego.reduce"(%filled) {kind = "add", dim = 1 : i64} : ...

Where the operation follows the load directly, `other` of the load is what changes nothing. A store
drops what lies past its own end; what else is invalid it drops by a lego.restrict directly before
it. No other lego.restrict is left, and no lego.fill; the gpu.launch gets the attribute
`lego.filled`.
"""

from lego_mlir.mlir.tile_passes.fill_invalid.rewriting import fill_invalid

__all__ = ["fill_invalid"]
