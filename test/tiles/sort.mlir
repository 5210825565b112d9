// A row of 64 elements in a warp: rounds between registers, and between lanes by shuffles.
// RUN: %legoc %s | FileCheck %s

#X = #lego.layout<"OrderBy(Row(64))">
#row = #lego.layout<"OrderBy(Row(1, 32, 2)).GroupBy([64])">

// The first round compares a thread's two registers once, and exchanges them.
// CHECK-LABEL: func.func @sort(
// CHECK: %[[PAIR:.*]]:2 = vector.to_elements
// CHECK: %[[SWAPS:.*]] = arith.cmpi slt, %[[PAIR]]#1, %[[PAIR]]#0 : i32
// CHECK-DAG: arith.select %[[SWAPS]], %[[PAIR]]#1, %[[PAIR]]#0 : i32
// CHECK-DAG: arith.select %[[SWAPS]], %[[PAIR]]#0, %[[PAIR]]#1 : i32

// The second one mirrors: a register meets the other one of the next lane. Both lanes compare.
// CHECK: gpu.shuffle xor
// CHECK: gpu.shuffle xor
// CHECK: %[[COMES:.*]] = arith.cmpi slt
// CHECK: %[[GOES:.*]] = arith.cmpi slt
// CHECK: %[[TAKES:.*]] = arith.select %{{.*}}, %[[COMES]], %[[GOES]] : i1
// CHECK: arith.select %[[TAKES]]
// CHECK-NOT: gpu.barrier
// CHECK: vector.store
func.func @sort(%x: memref<64xi32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0) {layout = #X, slice = array<i64: 0>}
        : (memref<64xi32>, index) -> tensor<64xi32, #row>
    %s = "lego.sort_with"(%v) ({
    ^bb0(%first: i32, %second: i32):
      %before = arith.cmpi slt, %first, %second : i32
      gpu.yield %before : i1
    }) {dim = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0>,
        resultSegmentSizes = array<i32: 1, 0, 0, 0>}
        : (tensor<64xi32, #row>) -> tensor<64xi32, #row>
    "lego.store"(%s, %x, %c0) {layout = #X, slice = array<i64: 0>}
        : (tensor<64xi32, #row>, memref<64xi32>, index) -> ()
    gpu.terminator
  }
  return
}
