// A loop over the parts of a tile in registers is unrolled, so that no branch chooses a part.
// RUN: %legoc %S/../tile_steps/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=4 --param overlap_epilogue=0 --emit=index | FileCheck %s
// RUN: %legoc %S/../tile_steps/Inputs/deep_grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=4 --emit=index | FileCheck %s --check-prefix=SPREAD

// CHECK-NOT:  scf.index_switch
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK-NOT:  nvvm.stmatrix

// Parts that are put in the iterations of the next tile's loop have numbers that only this loop knows; those
// of the last tile are put one after another.
// SPREAD-COUNT-1: scf.index_switch
// SPREAD-NOT: scf.index_switch
