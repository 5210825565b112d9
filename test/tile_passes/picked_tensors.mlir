// A tile of one of several tensors is copied by TMA: each has its map, and the maps are one parameter.
// Tensors whose sizes are from no table have none, so threads copy their tiles.
// RUN: %legoc %s --schedule=persistent --param ctas=2 --param store_stages=1 --param overlap_epilogue=0 --emit=index | FileCheck %s
// RUN: %legoc %s --schedule=persistent --param ctas=2 --param store_stages=1 --param overlap_epilogue=0 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: sed 's/%M = "lego.table"(%which) {values = array<i64: 100, 64>} : (index) -> index/%M = affine.apply affine_map<(d0) -> (100 - d0 * 36)>(%which)/' %s > %t.open.mlir
// RUN: %legoc %t.open.mlir --schedule=persistent --param ctas=2 --emit=placed | FileCheck %s --check-prefix=OPEN

// CHECK-DAG:  %[[A0:[0-9]+]] = "lego.tensor_map"(%arg0) {{.*}}shape = array<i64: 64, 100>
// CHECK-DAG:  %[[A1:[0-9]+]] = "lego.tensor_map"(%arg1) {{.*}}shape = array<i64: 64, 64>
// CHECK-DAG:  %[[AS:[0-9]+]] = "lego.tensor_maps"(%[[A0]], %[[A1]])
// CHECK-DAG:  %[[C0:[0-9]+]] = "lego.tensor_map"(%arg3) {{.*}}shape = array<i64: 64, 100>
// CHECK-DAG:  %[[C1:[0-9]+]] = "lego.tensor_map"(%arg4) {{.*}}shape = array<i64: 64, 64>
// CHECK-DAG:  %[[CS:[0-9]+]] = "lego.tensor_maps"(%[[C0]], %[[C1]])
// CHECK:      gpu.launch
// CHECK:      %[[A:[0-9]+]] = llvm.getelementptr %[[AS]][%{{[0-9]+}}] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<128 x i8>
// CHECK:      nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]],
// CHECK:      %[[C:[0-9]+]] = llvm.getelementptr %[[CS]][%{{[0-9]+}}]
// CHECK:      nvvm.cp.async.bulk.tensor.global.shared.cta %[[C]],

// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// OPEN:       "lego.copy_async"({{.*}}engine = "cp.async"
// OPEN:       "lego.copy_async"({{.*}}, %arg2, {{.*}}engine = "tma"

#A = #lego.layout<"OrderBy(Row(M, 64))">
#B = #lego.layout<"OrderBy(Row(64, 64))">
func.func @picked(%a0: memref<6400xf16> {lego.layout = #lego.layout<"OrderBy(Row(100, 64))">, lego.alignment = 16 : i64},
                  %a1: memref<4096xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %b: memref<4096xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %c0: memref<6400xf16> {lego.layout = #lego.layout<"OrderBy(Row(100, 64))">, lego.alignment = 16 : i64},
                  %c1: memref<4096xf16> {lego.layout = #B, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%x, %by, %bz) in (%gx = %three, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %zero = arith.constant 0 : index
    %step = arith.constant 1 : index
    %trips = arith.constant 4 : index
    %sixteen = arith.constant 16 : index
    %size = arith.constant 64 : index
    // Programs 0 and 1 compute the first tensor, program 2 the second one.
    %two = arith.constant 2 : index
    %which = arith.divui %x, %two : index
    %tile = arith.remui %x, %two : index
    %row = arith.muli %tile, %size : index
    %M = "lego.table"(%which) {values = array<i64: 100, 64>} : (index) -> index
    %fa0 = memref.cast %a0 : memref<6400xf16> to memref<?xf16>
    %fa1 = memref.cast %a1 : memref<4096xf16> to memref<?xf16>
    %a = "lego.pick"(%which, %fa0, %fa1) : (index, memref<?xf16>, memref<?xf16>) -> memref<?xf16>
    %fc0 = memref.cast %c0 : memref<6400xf16> to memref<?xf16>
    %fc1 = memref.cast %c1 : memref<4096xf16> to memref<?xf16>
    %c = "lego.pick"(%which, %fc0, %fc1) : (index, memref<?xf16>, memref<?xf16>) -> memref<?xf16>
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = scf.for %i = %zero to %trips step %step iter_args(%acc = %none) -> (tensor<64x64xf32>) {
      %k = arith.muli %i, %sixteen : index
      %ta = "lego.load"(%a, %row, %k, %M) {layout = #A, slice = array<i64: 0, 1>}
        : (memref<?xf16>, index, index, index) -> tensor<64x16xf16>
      %tb = "lego.load"(%b, %k, %zero) {layout = #B, slice = array<i64: 0, 1>}
        : (memref<4096xf16>, index, index) -> tensor<16x64xf16>
      %d = "lego.dot"(%ta, %tb, %acc)
        : (tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %short = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
    "lego.store"(%short, %c, %row, %zero, %M) {layout = #A, slice = array<i64: 0, 1>}
      : (tensor<64x64xf16>, memref<?xf16>, index, index, index) -> ()
    gpu.terminator
  }
  return
}
