// The index stage of the transpose: no lego operation is left, no division and no remainder, and
// the loops hold what one would write by hand.
// RUN: %legoc %examples/transpose.mlir > %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t
// RUN: %legoc %examples/transpose.mlir --emit=index -o %t.file && cmp %t %t.file
// RUN: %legoc - < %examples/transpose.mlir | cmp %t -
// RUN: %legoc %t | cmp %t -

// NONE-NOT: "lego.
// NONE-NOT: {{arith.(div|rem|floordiv|ceildiv)}}
// NONE-NOT: {{floordiv|ceildiv| mod }}

// Where a block's tile and a thread's element lie in memory. With M and I the quotients by 32, the
// remainders are not taken: 1024*I + TID % 32 is TID + 992*I.
// CHECK: #[[A:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * 32 + s1 + s2 * 31744 + s3 * 992)>
// CHECK: #[[ROW:.*]] = affine_map<()[s0] -> (s0 * 32)>
// CHECK: #[[STEP_A:.*]] = affine_map<(d0) -> (d0 * 8192)>
// CHECK: #[[STEP_ROW:.*]] = affine_map<(d0) -> (d0 * 8)>
// CHECK: #[[TILE:.*]] = affine_map<(d0, d1) -> (d0 * 256 + d1)>
// CHECK: #[[B:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * 32768 + s1 - s2 * 1048544 + s3 * 992)>

// CHECK: lego.index_bitwidth = 32
// CHECK-SAME: lego.reference = "transpose"
// CHECK-LABEL: func.func @transpose(
// CHECK-SAME: %[[IN:.*]]: memref<1024x1024xf32> {lego.layout = #lego.layout<"OrderBy(Row(1024, 1024)).TileBy([32, 32], [32, 32])">}, %[[OUT:.*]]: memref<1024x1024xf32>
// CHECK: gpu.launch blocks(%[[BID:[^,]*]], {{.*}} = %c1024,
// CHECK-SAME: threads(%[[TID:[^,]*]], {{.*}} = %c256,
// CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>)
// CHECK-DAG: %[[A_FLAT:.*]] = memref.collapse_shape %[[IN]] {{.*}} into memref<1048576xf32>
// CHECK-DAG: %[[B_FLAT:.*]] = memref.collapse_shape %[[OUT]] {{.*}} into memref<1048576xf32>
// CHECK: %[[M:.*]] = arith.shrui %[[BID]], %c5
// CHECK-NEXT: %[[I:.*]] = arith.shrui %[[TID]], %c5
// CHECK-NEXT: %[[A_BASE:.*]] = affine.apply #[[A]]()[%[[BID]], %[[TID]], %[[M]], %[[I]]]
// CHECK-NEXT: %[[I_BASE:.*]] = affine.apply #[[ROW]]()[%[[I]]]
// CHECK-NEXT: %[[J:.*]] = arith.andi %[[TID]], %c31

// CHECK-NEXT: scf.for %[[S:.*]] = %c0 to %c4 step %c1 {
// CHECK-NEXT: %[[A_STEP:.*]] = affine.apply #[[STEP_A]](%[[S]])
// CHECK-NEXT: %[[A_AT:.*]] = arith.addi %[[A_BASE]], %[[A_STEP]]
// CHECK-NEXT: %[[V:.*]] = memref.load %[[A_FLAT]][%[[A_AT]]]
// CHECK-NEXT: %[[I_STEP:.*]] = affine.apply #[[STEP_ROW]](%[[S]])
// CHECK-NEXT: %[[I_NOW:.*]] = arith.addi %[[I]], %[[I_STEP]]
// CHECK-NEXT: %[[SWIZZLED:.*]] = arith.xori %[[J]], %[[I_NOW]]
// CHECK-NEXT: %[[T_STEP:.*]] = affine.apply #[[TILE]](%[[S]], %[[SWIZZLED]])
// CHECK-NEXT: %[[T_AT:.*]] = arith.addi %[[I_BASE]], %[[T_STEP]]
// CHECK-NEXT: memref.store %[[V]], %[[SHARED]][%[[T_AT]]]
// CHECK-NEXT: }

// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: %[[J_BASE:.*]] = affine.apply #[[ROW]]()[%[[J]]]
// CHECK-NEXT: %[[B_BASE:.*]] = affine.apply #[[B]]()[%[[BID]], %[[TID]], %[[M]], %[[I]]]
// CHECK-NEXT: scf.for %[[S:.*]] = %c0 to %c4 step %c1 {
// CHECK-NEXT: %[[I_STEP:.*]] = affine.apply #[[STEP_ROW]](%[[S]])
// CHECK-NEXT: %[[I_NOW:.*]] = arith.addi %[[I]], %[[I_STEP]]
// CHECK-NEXT: %[[SWIZZLED:.*]] = arith.xori %[[J]], %[[I_NOW]]
// CHECK-NEXT: %[[T_AT:.*]] = arith.addi %[[J_BASE]], %[[SWIZZLED]]
// CHECK-NEXT: %[[V:.*]] = memref.load %[[SHARED]][%[[T_AT]]]
// CHECK-NEXT: %[[B_STEP:.*]] = affine.apply #[[STEP_A]](%[[S]])
// CHECK-NEXT: %[[B_AT:.*]] = arith.addi %[[B_BASE]], %[[B_STEP]]
// CHECK-NEXT: memref.store %[[V]], %[[B_FLAT]][%[[B_AT]]]
// CHECK-NEXT: }
// CHECK-NEXT: gpu.terminator
