// Thread and block ids know their ranges: from the launch, from what a gpu.func says, and else from
// what a GPU can have.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<()[s0, s1] -> (s0 + s1)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<()[s0, s1] -> (s0 + s1 * 6)>

#blocks  = #lego.layout<"OrderBy(Row(4, 8))">
#threads = #lego.layout<"OrderBy(Row(2, 3))">

// CHECK-LABEL: func.func @launch(
// CHECK-SAME: %[[OUT:.*]]: memref<32x6xindex>
// CHECK: gpu.launch blocks(%[[V0:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c32, %{{.*}} = %c1, %{{.*}} = %c1) threads(%[[V1:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c6, %{{.*}} = %c1, %{{.*}} = %c1) {
// CHECK-DAG: %[[V2:.*]] = arith.andi %[[V0]], %c7
// CHECK-DAG: %[[V3:.*]] = arith.divui %[[V1]], %c3
// CHECK-DAG: %[[V4:.*]] = arith.remui %[[V1]], %c3
// CHECK-DAG: %[[V5:.*]] = arith.andi %[[V0]], %c-8
// CHECK-DAG: %[[V6:.*]] = affine.apply #[[MAP]]()[%[[V4]], %[[V5]]]
// CHECK: memref.store %[[V6]], %[[OUT]][%[[V2]], %[[V3]]] : memref<32x6xindex>
// CHECK-NEXT: memref.store %c0, %[[OUT]][%[[V2]], %c0] : memref<32x6xindex>
// CHECK-NEXT: gpu.terminator
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @launch(%out: memref<32x6xindex>) {
  %c1 = arith.constant 1 : index
  %blocks = "lego.size"() {layout = #blocks} : () -> index
  %threads = "lego.size"() {layout = #threads} : () -> index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
    %i, %j = "lego.inv"(%tx) {layout = #threads} : (index) -> (index, index)
    // Both as unknown as an id of its launch can be, and zero.
    %zero = "lego.apply"(%by, %tz) {layout = #threads} : (index, index) -> index
    %0 = "lego.apply"(%m, %j) {layout = #blocks} : (index, index) -> index
    memref.store %0, %out[%n, %i] : memref<32x6xindex>
    memref.store %zero, %out[%n, %zero] : memref<32x6xindex>
    gpu.terminator
  }
  return
}

gpu.module @kernels {
  // The x block is known, the grid is not: a block id is below 2^31, so a shift may be unsigned.
  // CHECK-LABEL: gpu.func @known_block(
  // CHECK-SAME: %[[OUT:.*]]: memref<64xindex>
  // CHECK: %[[V0:.*]] = gpu.thread_id x
  // CHECK-NEXT: %[[V1:.*]] = gpu.block_id x
  // CHECK-NEXT: %[[V2:.*]] = gpu.block_dim x
  // CHECK-DAG: %[[V3:.*]] = arith.shrui %[[V1]], %c4
  // CHECK-DAG: %[[V4:.*]] = arith.andi %[[V1]], %c15
  // CHECK-DAG: %[[V5:.*]] = affine.apply #[[MAP1]]()[%[[V0]], %[[V4]]]
  // CHECK: memref.store %[[V3]], %[[OUT]][%[[V5]]] : memref<64xindex>
  // CHECK-NEXT: memref.store %[[V2]], %[[OUT]][%[[V0]]] : memref<64xindex>
  // CHECK-NEXT: gpu.return
  gpu.func @known_block(%out: memref<64xindex>) kernel attributes {known_block_size = array<i32: 6, 1, 1>} {
    %tx = gpu.thread_id x
    %bx = gpu.block_id x
    %size = gpu.block_dim x
    %i, %j = "lego.inv"(%tx) {layout = #lego.layout<"OrderBy(Row(1, 6))">} : (index) -> (index, index)
    %m, %n = "lego.inv"(%bx) {layout = #lego.layout<"OrderBy(Row(65536, 16))">} : (index) -> (index, index)
    %0 = "lego.apply"(%n, %j) {layout = #lego.layout<"OrderBy(Row(16, 6))">} : (index, index) -> index
    %1 = arith.addi %i, %size : index
    memref.store %m, %out[%0] : memref<64xindex>
    memref.store %1, %out[%j] : memref<64xindex>
    gpu.return
  }
}
