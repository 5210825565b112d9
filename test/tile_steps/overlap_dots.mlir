// Dots by wgmma are waited for where their results are used: that of the scores while the other one
// may go on, that of the values at the end. Tiles are released behind the waits.
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/overlap_dots.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/overlap_dots.mlir --check-each-step | FileCheck %s --check-prefix=STEPS

// CHECK:      %[[K:[^ ]+]] = "lego.make_ring"()
// CHECK-NEXT: %[[V:[^ ]+]] = "lego.make_ring"()
// CHECK:      scf.for %[[I:[^ ]+]] =
// CHECK:      %[[S:[^ ]+]] = "lego.dot_async"
// CHECK:      %[[BEFORE:[^ ]+]] = arith.subi %[[I]],
// CHECK:      %[[O:[^ ]+]] = "lego.dot_async"
// CHECK-NEXT: "lego.dot_wait"(%[[S]]) {pending = 1 : i64}
// CHECK-NEXT: "lego.release"(%[[K]], %[[I]])
// CHECK:      math.exp
// CHECK:      %[[SUMS:[^ ]+]] = "lego.dot_wait"(%[[O]]) {pending = 0 : i64}
// CHECK-NEXT: "lego.release"(%[[V]], %[[BEFORE]])
// CHECK-NEXT: scf.yield {{.*}}%[[SUMS]]
// CHECK-NOT:  "lego.dot"(

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error
