// The dialect loads in stock mlir-opt, and every operation of it parses, verifies and prints back.
// REQUIRES: mlir-opt
// RUN: %mlir-opt --irdl-file=%dialects/lego.irdl.mlir %s | FileCheck %s
// RUN: %mlir-opt --irdl-file=%dialects/lego.irdl.mlir %s > %t
// RUN: %mlir-opt --irdl-file=%dialects/lego.irdl.mlir %t | diff %t -

#A = #lego.layout<"OrderBy(Row(M, 64))">

// CHECK-LABEL: func.func @every_operation
func.func @every_operation(%buffer: memref<?xf32>, %M: index, %i: index, %j: index) {
  // CHECK: %[[OFFSET:.*]] = "lego.apply"({{.*}}) {layout = #lego.layout<"OrderBy(Row(M, 64))">} : (index, index, index) -> index
  %offset = "lego.apply"(%i, %j, %M) {layout = #A} : (index, index, index) -> index
  // CHECK: "lego.inv"(%[[OFFSET]], {{.*}}) {{.*}} : (index, index) -> (index, index)
  %row, %column = "lego.inv"(%offset, %M) {layout = #A} : (index, index) -> (index, index)
  // CHECK: "lego.size"({{.*}}) {{.*}} : (index) -> index
  %size = "lego.size"(%M) {layout = #A} : (index) -> index
  // CHECK: "lego.dim"({{.*}}) {{.*}}dim = 1{{.*}} : (index) -> index
  %columns = "lego.dim"(%M) {layout = #A, dim = 1} : (index) -> index
  // CHECK: "lego.alloc"() {{.*}} : () -> memref<?xf32, #gpu.address_space<workgroup>>
  %tile = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(8, 8))">}
      : () -> memref<?xf32, #gpu.address_space<workgroup>>
  // CHECK: "lego.mask"({{.*}}) {{.*}} : (index, index, index) -> i1
  %exists = "lego.mask"(%i, %j, %M) {layout = #A} : (index, index, index) -> i1
  // CHECK: %[[ROW:.*]] = "lego.load"({{.*}}) {{.*}}slice = array<i64: 1>{{.*}} -> vector<64xf32>
  %row_of_64 = "lego.load"(%buffer, %i, %M) {layout = #A, slice = array<i64: 1>}
      : (memref<?xf32>, index, index) -> vector<64xf32>
  // CHECK: "lego.store"(%[[ROW]], {{.*}}) {{.*}}slice = array<i64: 1>
  "lego.store"(%row_of_64, %buffer, %i, %M) {layout = #A, slice = array<i64: 1>}
      : (vector<64xf32>, memref<?xf32>, index, index) -> ()
  // CHECK: %[[VALUE:.*]] = "lego.load"({{.*}}) {{.*}} : (memref<?xf32>, index, index, index) -> f32
  %value = "lego.load"(%buffer, %i, %j, %M) {layout = #A}
      : (memref<?xf32>, index, index, index) -> f32
  // CHECK: "lego.store"(%[[VALUE]], {{.*}}) {{.*}} : (f32, memref<?xf32>, index, index, index) -> ()
  "lego.store"(%value, %buffer, %i, %j, %M) {layout = #A}
      : (f32, memref<?xf32>, index, index, index) -> ()
  // CHECK: "lego.check"({{.*}}) {bijective, layout = {{.*}}} : (index) -> ()
  "lego.check"(%M) {layout = #A, bijective} : (index) -> ()
  // CHECK: "lego.table"({{.*}}) {values = array<i64: 3, 1, 4>} : (index) -> index
  %entry = "lego.table"(%i) {values = array<i64: 3, 1, 4>} : (index) -> index
  // CHECK: "lego.pick"({{.*}}) : (index, memref<?xf32>, memref<?xf32>) -> memref<?xf32>
  %one = "lego.pick"(%i, %buffer, %buffer) : (index, memref<?xf32>, memref<?xf32>) -> memref<?xf32>
  // CHECK: %[[MAP:.*]] = "lego.tensor_map"({{.*}}) {{.*}} : (memref<?xf32>) -> !llvm.ptr
  %map = "lego.tensor_map"(%buffer) {layout = #A, shape = array<i64: 64, 8>,
      strides = array<i64: 256>, box = array<i64: 32, 8>, swizzle = 128 : i64,
      l2_promotion = 256 : i64}
      : (memref<?xf32>) -> !llvm.ptr
  // CHECK: "lego.tensor_maps"(%[[MAP]], %[[MAP]]) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %maps = "lego.tensor_maps"(%map, %map) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  return
}
