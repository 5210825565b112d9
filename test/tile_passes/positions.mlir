// Loops carry the stage and the parity of a ring's tiles unless these are bits of the number, and
// nothing divides by the stages in a loop over k. A CTA's next tile goes on where the one before ends.
// RUN: %legoc %S/../tile_steps/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param stages=3 --emit=index | FileCheck %s
// RUN: %legoc %S/../tile_steps/Inputs/deep_grid.mlir --schedule=persistent --param ctas=2 --param stages=5 --param store_stages=3 --param store_parts=4 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/../tile_steps/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param stages=2 --emit=index | FileCheck %s --check-prefix=BITS
// RUN: %legoc %S/../tile_steps/Inputs/grid.mlir --schedule=persistent --param ctas=3 --param stages=2 --param store_stages=2 --emit=index | FileCheck %s --check-prefix=STRIDE

// CHECK:      scf.for {{.*}} iter_args(%[[S0:[^ ]+]] = %c0, %[[P0:[^ ]+]] = %c0_i32) -> (index, i32)
// CHECK:      scf.for {{.*}} iter_args(%[[S:[^ ]+]] = %c0, %[[P:[^ ]+]] = %c0_i32) -> (index, i32)
// CHECK-NOT:  arith.remui
// CHECK-NOT:  arith.divui
// CHECK:      scf.for {{.*}} iter_args(%[[STAGE:[^ ]+]] = %[[S]], %[[PARITY:[^ ]+]] = %[[P]]) -> (index, i32)
// CHECK-NOT:  arith.remui
// CHECK-NOT:  arith.divui
// CHECK:      %[[OTHER:[^ ]+]] = arith.xori %[[PARITY]], %c1_i32
// CHECK:      nvvm.mbarrier.try_wait.parity %{{[^ ]+}}, %[[OTHER]], %
// CHECK-NOT:  arith.remui
// CHECK-NOT:  arith.divui
// CHECK:      %[[WRAPS:[^ ]+]] = arith.cmpi eq, %[[STAGE]], %c2
// CHECK:      arith.select %[[WRAPS]], %c0, %
// CHECK:      arith.xori %[[PARITY]], %
// CHECK:      scf.yield
// CHECK:      %[[WRAPS:[^ ]+]] = arith.cmpi ugt, %[[S]], %c0
// CHECK:      arith.select %[[WRAPS]], %
// CHECK:      scf.yield

// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// BITS-NOT:   -> (index, i32)
// BITS:       scf.for
// BITS-NOT:   -> (index, i32)

// To count iterations of a stride of 3 takes a division: positions are carried, of tiles that are put, too.
// STRIDE-NOT: arith.divui {{.*}}, %c3 :
// STRIDE:     scf.for {{.*}} step %c3 iter_args({{.*}} -> ({{.*}}vector{{.*}}, i32, index, i32)
// STRIDE-NOT: arith.divui {{.*}}, %c3 :
// STRIDE:     nvvm.stmatrix
