// What a tile leaves is carried to the next one, whose dots run while it is put into a ring part by part.
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=4 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param ctas=4 --param store_stages=2 --param store_parts=4 --check-each-step | FileCheck %s --check-prefix=STEPS
// Two iterations, of which one is in front of the loop of dots, for two parts:
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=2 --emit=placed | FileCheck %s --check-prefix=FEW
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=1 --emit=placed | FileCheck %s --check-prefix=ALONE
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/overlap_stores_early.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param overlap_epilogue=0 --emit=placed | FileCheck %s --check-prefix=ATONCE

// The first tile begins with zeros, which nothing puts.
// CHECK:      "lego.role"() ({
// CHECK-NOT:  "lego.dot_async"
// CHECK:      %[[ZEROS:[^ ]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf16
// CHECK:      scf.for %[[N:[^ ]+]] = %[[BEGIN:[^ ]+]] to {{.*}} iter_args(%[[X:[^ ]+]] = %[[ZEROS]])
// CHECK:      "lego.dot_async"
// CHECK-NOT:  "lego.put"
// CHECK:      %[[LATER:[^ ]+]] = arith.cmpi ult, %[[BEGIN]], %[[N]]
// CHECK-NOT:  scf.if
// CHECK:      scf.for %[[I:[^ ]+]] = %[[FIRST:[^ ]+]] to
// CHECK:      "lego.dot_async"
// CHECK-NEXT: %[[FROM:[^ ]+]] = arith.subi %[[I]], %[[FIRST]]
// CHECK-NEXT: %[[K:[^ ]+]] = arith.divui %[[FROM]],
// CHECK-NEXT: %c4{{.*}} = arith.constant 4
// CHECK-NEXT: %[[SOON:[^ ]+]] = arith.cmpi ult, %[[K]], %c4
// CHECK-NEXT: %[[DUE:[^ ]+]] = arith.andi %[[SOON]], %[[LATER]]
// CHECK-NEXT: scf.if %[[DUE]] {
// CHECK:      %[[PART:[^ ]+]] = "lego.extract_part"(%[[X]], %[[K]])
// CHECK:      "lego.put"({{.*}}, %[[PART]])
// CHECK:      }
// CHECK:      "lego.dot_wait"({{.*}}) {pending = 1
// CHECK:      %[[NEXT:[^ ]+]] = arith.truncf
// CHECK:      scf.yield %[[NEXT]]
// CHECK:      scf.for %[[L:[^ ]+]] = %c0{{.*}} to %c4
// CHECK:      "lego.extract_part"({{.*}}, %[[L]])
// CHECK:      "lego.put"
// CHECK:      name = "consumer"

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// FEW:        scf.for %[[N:[^ ]+]] = %[[BEGIN:[^ ]+]] to {{.*}} iter_args(%[[X:[^ ]+]] = %
// FEW:        "lego.dot_async"
// FEW:        %[[LATER:[^ ]+]] = arith.cmpi ult, %[[BEGIN]], %[[N]]
// FEW-NEXT:   scf.if %[[LATER]] {
// FEW:        scf.for %[[K:[^ ]+]] = %c0{{.*}} to %c2
// FEW:        "lego.extract_part"(%[[X]], %[[K]])
// FEW:        "lego.put"
// FEW:        scf.for
// FEW:        "lego.dot_async"
// FEW-NOT:    scf.if

// With a CTA for each tile there is no next one.
// ALONE:      arith.truncf
// ALONE:      "lego.put"
// ALONE-NOT:  "lego.put"
// ALONE:      name = "consumer"

// EARLY:      error: overlap_stores: the body of this loop begins no dot
// EARLY:      hint: transform_lego.overlap_iterations

// ATONCE:     scf.for %{{[^ ]+}} = %{{[^ ]+}} to %{{[^ ]+}} step %{{[^ ]+}} {
// ATONCE:     arith.truncf
// ATONCE:     "lego.put"
// ATONCE-NOT: "lego.put"
// ATONCE:     name = "consumer"
