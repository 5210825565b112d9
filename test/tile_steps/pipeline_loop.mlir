// The loads that go to the dot pass through rings; everything is still done by all threads.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/pipeline_loop.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/pipeline_loop.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/pipeline_loop.mlir --param stages=0 --emit=placed 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: %legoc %S/Inputs/matmul_narrow.mlir --schedule=%S/Inputs/pipeline_loop.mlir --emit=placed | FileCheck %s --check-prefix=NARROW
// RUN: %legoc %S/Inputs/matmul_narrow.mlir --schedule=%S/Inputs/pipeline_loop.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/pipeline_loop.mlir --param stages=1000000 --emit=placed 2>&1 | FileCheck %s --check-prefix=ROOM

// CHECK:      %[[A:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3 : i64, tensor<64x64xf16, #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">>>
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3
// CHECK-NEXT: scf.for %[[I:[^ ]+]] =
// CHECK:      "lego.acquire"(%[[A]], %[[I]])
// CHECK-NEXT: "lego.copy_async"(%[[A]], %[[I]], %arg0, {{.*}}) {engine = "plain"
// CHECK-NEXT: "lego.commit"(%[[A]], %[[I]])
// CHECK:      "lego.copy_async"(%[[B]], %[[I]], %arg1
// CHECK:      %[[X:[^ ]+]] = "lego.wait"(%[[A]], %[[I]])
// CHECK-NEXT: %[[Y:[^ ]+]] = "lego.wait"(%[[B]], %[[I]])
// CHECK-NEXT: "lego.dot"(%[[X]], %[[Y]],
// CHECK-NEXT: "lego.release"(%[[B]], %[[I]])
// CHECK-NEXT: "lego.release"(%[[A]], %[[I]])
// CHECK-NOT:  "lego.load"

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// STAGES:     error: pipeline_loop: stages is 0
// STAGES:     hint: --param stages=2
// ROOM:       error: pipeline_loop: 1000000 stages of this tile take 8192000000 bytes of shared memory, of which a CTA on sm_90a may have 232448
// ROOM:       hint: --param stages=28

// A tile that is converted on its way to a dot passes through a ring as it is in memory.
// NARROW:      %[[A:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3 : i64, tensor<64x64xf8E4M3FN,
// NARROW:      %[[X:[^ ]+]] = "lego.wait"(%[[A]],
// NARROW-NEXT: %[[Y:[^ ]+]] = "lego.convert"(%[[X]])
// NARROW-NEXT: "lego.release"(%[[A]],
// NARROW:      arith.extf %[[Y]]
// NARROW:      "lego.dot"
