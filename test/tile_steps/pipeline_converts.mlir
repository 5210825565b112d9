// 8-bit values that memory has along the wrong dimension are transposed from ring to ring, by warps of
// their own; reshapes and transposes before that are views of the first ring's tile.
// RUN: %legoc %S/Inputs/narrow_dots.mlir --schedule=%S/Inputs/pipeline_converts.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/narrow_dots.mlir --schedule=%S/Inputs/pipeline_converts.mlir --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %S/Inputs/narrow_dots.mlir --schedule=%S/Inputs/pipeline_converts.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/narrow_dots.mlir --schedule=%S/Inputs/pipeline_converts.mlir --explain 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: %legoc %S/Inputs/narrow_dots.mlir --schedule=%S/Inputs/pipeline_converts.mlir --param converter_warps=0 --emit=placed | FileCheck %s --check-prefix=NONE
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/pipeline_converts.mlir --emit=placed | FileCheck %s --check-prefix=NONE
// RUN: sed "s/default = 2/default = -1/" %S/Inputs/pipeline_converts.mlir > %t.mlir
// RUN: not %legoc %S/Inputs/narrow_dots.mlir --schedule=%t.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=LESS

// CHECK:      %[[K:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<2 : i64
// CHECK-NEXT: %[[V:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<32x64xf8E4M3FN, #lego.shared<"OrderBy(GenP([32, 64], tma_swizzle(64, 1)))">>>
// CHECK-NEXT: %[[T:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3 : i64, tensor<32x64xf8E4M3FN, #lego.shared<"OrderBy(GenP([64, 32], tma_swizzle(32, 1))).OrderBy(Col(32, 64))">>>
// CHECK:      %[[P:[^ ]+]] = "lego.reshape"{{.*}} -> tensor<64x32xf8E4M3FN
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.wait"(%[[T]], %[[I:[^)]+]])
// CHECK-NEXT: "lego.dot_async"(%[[P]], %[[B]],
// CHECK:      "lego.release"(%[[T]], %[[I]])
// CHECK:      name = "consumer"
// CHECK-NOT:  "lego.copy_async"(%[[T]],
// CHECK:      name = "producer", warps = 2 : i64
// CHECK:      %[[X:[^ ]+]] = "lego.wait"(%[[V]], %[[J:[^)]+]])
// CHECK-NEXT: %[[X1:[^ ]+]] = "lego.reshape"(%[[X]]) {{.*}} -> tensor<2x2x4x2x64xf8E4M3FN, #lego.shared<
// CHECK-NEXT: %[[X2:[^ ]+]] = "lego.transpose"(%[[X1]]) {order = array<i64: 0, 2, 1, 3, 4>}
// CHECK-NEXT: %[[X3:[^ ]+]] = "lego.reshape"(%[[X2]]) {{.*}} -> tensor<32x64xf8E4M3FN, #lego.shared<
// CHECK-NEXT: "lego.acquire"(%[[T]], %[[J]])
// CHECK-NEXT: "lego.put"(%[[T]], %[[J]], %[[X3]])
// CHECK-NEXT: "lego.commit"(%[[T]], %[[J]])
// CHECK-NEXT: "lego.release"(%[[V]], %[[J]])
// CHECK:      {first_warp = 6 : i64, name = "converter", warps = 2 : i64}

// Neither shuffles nor accesses of bytes: four words are loaded, permuted and stored, then the next.
// PTX-NOT:    shfl.sync.bfly
// PTX:        ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PTX-COUNT-4: prmt.b32
// PTX:        stmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX:        ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PTX-COUNT-4: prmt.b32
// PTX:        stmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX-NOT:    ldmatrix
// PTX:        fence.proxy.async.shared::cta;
// PTX-NOT:    st.shared.b8

// STEPS:      order_contractions: every element is the same
// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// EXPLAIN:    3 stages of 32×64 f8E4M3FN, 6144 bytes, put from shared memory
// EXPLAIN:    role       converter: warps 6 to 7

// NONE-NOT:   "lego.put"
// NONE:       name = "consumer"
// LESS:       error: pipeline_converts: converter_warps is -1
// LESS:       hint: --param converter_warps=4
