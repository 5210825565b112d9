// Two tiles are copied in front of the loop, and in it the one after them, if there is one. The groups
// of cp.async that a wait leaves on their way follow from the numbers of tiles.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/copy_ahead.mlir --target=sm_80 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/copy_ahead.mlir --target=sm_80 --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/copy_ahead.mlir --target=sm_80 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/copy_ahead.mlir --target=sm_80 --param iterations=1 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/copy_ahead.mlir --target=sm_80 --param iterations=3 --emit=placed 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/copy_ahead_only.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK:         %[[A:[^ ]+]] = "lego.make_ring"
// CHECK:         %[[B:[^ ]+]] = "lego.make_ring"
// CHECK:         %[[N:[^ ]+]] = arith.constant 4
// CHECK-COUNT-4: "lego.copy_async"
// CHECK:         scf.for %[[I:[^ ]+]] =
// CHECK-NEXT:    "lego.wait"(%[[A]], %[[I]])
// CHECK:         "lego.wait"(%[[B]], %[[I]])
// CHECK:         %[[TWO:[^ ]+]] = arith.constant 2
// CHECK-NEXT:    %[[K:[^ ]+]] = arith.addi %[[I]], %[[TWO]]
// CHECK-NEXT:    %[[THERE:[^ ]+]] = arith.cmpi slt, %[[K]], %[[N]]
// CHECK-NEXT:    scf.if %[[THERE]] {
// CHECK-NEXT:      %[[BOUND:[^ ]+]] = arith.andi %[[K]], %[[K]] {lego.bounds = array<i64: 4>}
// CHECK:           "lego.acquire"(%[[A]], %[[BOUND]])
// CHECK-NEXT:      "lego.copy_async"(%[[A]], %[[BOUND]], %arg0
// CHECK-NEXT:      "lego.commit"(%[[A]], %[[BOUND]])
// CHECK:         scf.if
// CHECK:           "lego.copy_async"(%[[B]],
// CHECK:         "lego.dot"

// Behind the wait for A, tiles of A and B of the next iteration are on their way, and B of this one.
// INDEX-NOT:     mbarrier
// INDEX-COUNT-4: nvvm.cp.async.commit.group
// INDEX:         scf.for
// INDEX-NEXT:    nvvm.cp.async.wait.group 3
// INDEX-NEXT:    gpu.barrier
// INDEX:         nvvm.ldmatrix
// INDEX:         nvvm.cp.async.wait.group 2
// INDEX-NEXT:    gpu.barrier
// INDEX:         scf.if
// INDEX:           nvgpu.device_async_copy {{.*}}, 8 {bypassL1}
// INDEX:         {{^ +[}]$}}
// INDEX-NEXT:    nvvm.cp.async.commit.group
// INDEX-NOT:     gpu.barrier
// INDEX:         scf.yield

// STEPS:         the schedule: every element is the same
// STEPS:         lowering, run in the simulator (random): every element is the same

// STAGES:        error: copy_ahead: a ring of 3 stages holds no tile that is copied 3 iterations ahead
// STAGES:        hint: --param stages=4 for pipeline_loop

// NONE:          error: copy_ahead: no loop fills a ring
// NONE:          hint: transform_lego.pipeline_loop makes rings
