// A role of its own fills the rings: it repeats the loop and the arithmetic of the copies' indices.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=pipelined --param producer_registers=40 --param consumer_registers=240 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=pipelined --param stages=3 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=pipelined --param producer_warps=2 --param producer_registers=24 --emit=placed 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: %legoc %S/Inputs/matmul_narrow.mlir --schedule=pipelined --emit=placed | FileCheck %s --check-prefix=EARLY

// CHECK:      %[[THREADS:[^ ]+]] = arith.constant 256 : index
// CHECK:      gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %[[THREADS]],
// CHECK:      %[[A:[^ ]+]] = "lego.make_ring"()
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.make_ring"()
// CHECK:      "lego.role"() ({
// CHECK:      scf.for %[[I:[^ ]+]] = {{.*}} iter_args
// CHECK-NOT:  "lego.acquire"
// CHECK:      "lego.wait"(%[[A]], %[[I]])
// CHECK:      "lego.wait"(%[[B]], %[[I]])
// CHECK:      "lego.dot_async"
// CHECK:      "lego.store"
// CHECK:      {first_warp = 0 : i64, name = "consumer", registers = 240 : i64, warps = 4 : i64}
// CHECK-NEXT: "lego.role"() ({
// CHECK-NEXT: scf.for %[[J:[^ ]+]] =
// CHECK-NOT:  iter_args
// CHECK:      %[[K:[^ ]+]] = arith.muli %[[J]],
// CHECK:      "lego.acquire"(%[[A]], %[[J]])
// CHECK-NEXT: "lego.copy_async"(%[[A]], %[[J]], %arg0, {{.*}}, %[[K]]) {engine = "tma"
// CHECK-NEXT: "lego.commit"(%[[A]], %[[J]])
// CHECK-NEXT: "lego.acquire"(%[[B]], %[[J]])
// CHECK-NOT:  "lego.wait"
// CHECK:      {first_warp = 4 : i64, name = "producer", registers = 40 : i64, warps = 4 : i64}
// CHECK:      lego.tile_warps = 4 : i64

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// WARPS:      error: 'lego.role' of the warps 4 to 5 sets their registers

// Each role waits for earlier launches, when the rings are there; the next one begins before, as all CTAs run.
// EARLY:      "lego.make_ring"
// EARLY-NOT:  nvvm.griddepcontrol
// EARLY:      "lego.role"
// EARLY-NEXT: nvvm.griddepcontrol launch_dependents
// EARLY-NEXT: nvvm.griddepcontrol wait
// EARLY:      name = "consumer"
// EARLY:      "lego.role"
// EARLY-NEXT: nvvm.griddepcontrol launch_dependents
// EARLY-NEXT: nvvm.griddepcontrol wait
// EARLY:      name = "producer"
