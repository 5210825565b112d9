// What a tile leaves is carried to the next one, and put into the ring while that one's first dot runs.
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=2 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=4 --param store_stages=2 --param store_parts=2 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=1 --emit=placed | FileCheck %s --check-prefix=ALONE
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/overlap_stores_early.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=EARLY

// CHECK:      "lego.role"() ({
// CHECK:      arith.truncf
// CHECK-NOT:  "lego.put"
// CHECK:      scf.for %[[N:[^ ]+]] = {{.*}} iter_args(%[[X:[^ ]+]] = %{{[^ ]+}}, %[[Y:[^ ]+]] = %
// CHECK:      "lego.dot_async"
// CHECK-NEXT: %[[BEFORE:[^ ]+]] = arith.subi %[[N]],
// CHECK:      "lego.put"({{.*}}, %[[X]])
// CHECK:      "lego.put"({{.*}}, %[[Y]])
// CHECK:      scf.for
// CHECK:      "lego.dot_async"
// CHECK:      arith.truncf
// CHECK:      %[[NEXT:[^ ]+]] = "lego.extract_slice"
// CHECK:      scf.yield %[[NEXT]],
// CHECK:      "lego.put"
// CHECK:      "lego.put"
// CHECK:      name = "consumer"

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// With a CTA for each tile there is no next one.
// ALONE:      arith.truncf
// ALONE:      "lego.put"
// ALONE-NOT:  "lego.put"
// ALONE:      name = "consumer"

// EARLY:      error: overlap_stores: the body of this loop begins no dot
// EARLY:      hint: transform_lego.overlap_iterations
