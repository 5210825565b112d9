// A dot that only accumulates is waited for behind the dot of the next iteration, and its stages are
// released there. The first iteration is in front of the loop: its dot defines the accumulator.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/overlap_iterations.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/overlap_iterations.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/overlap_iterations.mlir --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: not %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/overlap_iterations.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=CHAINED
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/overlap_iterations.mlir --target=sm_90 --emit=placed 2>&1 | FileCheck %s --check-prefix=MMA

// CHECK:      %[[A:[^ ]+]] = "lego.make_ring"()
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.make_ring"()
// CHECK:      %[[A0:[^ ]+]] = "lego.wait"(%[[A]], %c0{{.*}})
// CHECK:      %[[B0:[^ ]+]] = "lego.wait"(%[[B]], %c0{{.*}})
// CHECK:      %[[D0:[^ ]+]] = "lego.dot_async"(%[[A0]], %[[B0]], %cst
// CHECK-NOT:  "lego.release"
// CHECK:      %[[SUM:[^ ]+]] = scf.for %[[I:[^ ]+]] = {{.*}} iter_args(%[[C:[^ ]+]] = %[[D0]])
// CHECK:      %[[D:[^ ]+]] = "lego.dot_async"({{.*}}, %[[C]])
// CHECK-NEXT: "lego.dot_wait"(%[[C]]) {pending = 1 : i64}
// CHECK:      %[[BEFORE:[^ ]+]] = arith.subi %[[I]], %c1
// CHECK-DAG:  "lego.release"(%[[A]], %[[BEFORE]])
// CHECK-DAG:  "lego.release"(%[[B]], %[[BEFORE]])
// CHECK:      scf.yield %[[D]]
// CHECK:      "lego.dot_wait"(%[[SUM]]) {pending = 0 : i64}
// CHECK-DAG:  "lego.release"(%[[A]],
// CHECK-DAG:  "lego.release"(%[[B]],

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// PTX:        wgmma.commit_group.sync.aligned;
// PTX:        wgmma.commit_group.sync.aligned;
// PTX-NOT:    mov.b32
// PTX:        wgmma.wait_group.sync.aligned 1;
// PTX:        wgmma.wait_group.sync.aligned 0;

// CHAINED:    error: overlap_iterations: no loop has dots by wgmma that only add to what it carries
// MMA:        error: overlap_iterations: no loop has dots by wgmma that only add to what it carries
