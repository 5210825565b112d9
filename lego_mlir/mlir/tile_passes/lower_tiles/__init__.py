"""Lower tiles to what each thread holds in registers, and to its accesses of memory.

The pass walks over the kernel (`walk`); a tile becomes a fragment, what one thread holds of it
(`fragments`). One module lowers each kind of operation. What remains are operations of arith,
vector, gpu and scf, and `lego.inv`, `lego.mask`, `lego.alloc`, `lego.load_parts` and
`lego.store_parts`, from which the index stage derives all addresses. There are no barriers yet.

    %x = "lego.load"(%a, %i, %c0) {layout = #A, slice = array<i64: 1>}
        : (memref<?xf32>, index, index) -> tensor<256xf32, #D>
    %y = arith.negf %x : tensor<256xf32, #D>

becomes, with #D = "OrderBy(Row(1, 32, 8)).GroupBy([256])",

    %first = arith.muli %thread, %c8 : index
    %j = "lego.inv"(%first) {layout = #D}
    %x:2 = "lego.load_parts"(%a, %i, %j) {layout = #A, registers = array<i64: 1, 8, 1>}
        : (memref<?xf32>, index, index) -> (vector<4xf32>, vector<4xf32>)
    %y0 = arith.negf %x#0 : vector<4xf32>
    %y1 = arith.negf %x#1 : vector<4xf32>
"""

from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, part_width
from lego_mlir.mlir.tile_passes.lower_tiles.walk import lower_tiles

__all__ = ["Fragment", "lower_tiles", "part_width"]
