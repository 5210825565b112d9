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

// A K loop's dot goes on until the next one has begun; its tiles are released one iteration late.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=pipelined --emit=placed | FileCheck %s --check-prefix=MATMUL
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=pipelined --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=pipelined --check-each-step | FileCheck %s --check-prefix=STEPS

// MATMUL:      %[[A:[^ ]+]] = "lego.make_ring"()
// MATMUL:      %[[FIRST:[^ ]+]] = "lego.dot_async"
// MATMUL-NOT:  "lego.release"
// MATMUL:      %[[END:[^ ]+]] = scf.for %[[I:[^ ]+]] = {{.*}} iter_args(%[[SUM:[^ ]+]] = %[[FIRST]])
// MATMUL:      "lego.wait"(%[[A]], %[[I]])
// MATMUL:      "lego.dot_async"({{.*}}, %[[SUM]]) {pending = 1 : i64}
// MATMUL-NEXT: %[[BEFORE:[^ ]+]] = arith.subi %[[I]],
// MATMUL:      "lego.release"(%[[A]], %[[BEFORE]])
// MATMUL:      "lego.dot_wait"(%[[END]]) {pending = 0 : i64}
// MATMUL:      "lego.release"(%[[A]],

// PTX:         wgmma.mma_async.sync.aligned.m64n64k16
// PTX:         wgmma.wait_group.sync.aligned 1;
// PTX:         wgmma.wait_group.sync.aligned 0;
