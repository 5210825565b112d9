// lego.load and lego.store: an access of flat memory, where the layout says.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<()[s0, s1] -> (s0 * 64 + s1)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * 1024 + s1 * 16 + s2 * 64 + s3)>
// CHECK-DAG: #[[MAP2:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * 16 + s1 * 1024 + s2 + s3 * 64)>
// CHECK-DAG: #[[MAP3:.*]] = affine_map<()[s0, s1] -> (s0 + s1 * 8)>

#A = #lego.layout<"OrderBy(Row(64, 64)).TileBy([4, 4], [16, 16])">

// CHECK-LABEL: func.func @flat(
// CHECK-SAME: %[[BUFFER:.*]]: memref<4096xf32>, %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP]]()[%[[I]], %[[J]]]
// CHECK: %[[V1:.*]] = memref.load %[[BUFFER]][%[[V0]]] : memref<4096xf32>
// CHECK-NEXT: return %[[V1]] : f32
func.func @flat(%buffer: memref<4096xf32>, %i: index, %j: index) -> f32 {
  %v = "lego.load"(%buffer, %i, %j) {layout = #lego.layout<"OrderBy(Row(64, 64))">}
      : (memref<4096xf32>, index, index) -> f32
  return %v : f32
}

// The buffer's own shape does not matter, and it is made flat once.
// CHECK-LABEL: func.func @shaped(
// CHECK-SAME: %[[BUFFER:.*]]: memref<2x32x64xf16>, %[[A:.*]]: index, %[[B:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index
// CHECK: %[[V0:.*]] = memref.collapse_shape %[[BUFFER]] [[0, 1, 2]] : memref<2x32x64xf16> into memref<4096xf16>
// CHECK-DAG: %[[V1:.*]] = affine.apply #[[MAP1]]()[%[[A]], %[[B]], %[[I]], %[[J]]]
// CHECK: %[[V2:.*]] = memref.load %[[V0]][%[[V1]]] : memref<4096xf16>
// CHECK-DAG: %[[V3:.*]] = affine.apply #[[MAP2]]()[%[[A]], %[[B]], %[[I]], %[[J]]]
// CHECK: memref.store %[[V2]], %[[V0]][%[[V3]]] : memref<4096xf16>
// CHECK-NEXT: return
func.func @shaped(%buffer: memref<2x32x64xf16>, %a: index, %b: index, %i: index, %j: index) {
  %v = "lego.load"(%buffer, %a, %b, %i, %j) {layout = #A}
      : (memref<2x32x64xf16>, index, index, index, index) -> f16
  "lego.store"(%v, %buffer, %b, %a, %j, %i) {layout = #A}
      : (f16, memref<2x32x64xf16>, index, index, index, index) -> ()
  return
}

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[BUFFER:.*]]: memref<?x?xi8>, %[[I:.*]]: index, %[[J:.*]]: index, %[[M:.*]]: index, %[[N:.*]]: index
// CHECK: %[[V0:.*]] = memref.collapse_shape %[[BUFFER]] [[0, 1]] : memref<?x?xi8> into memref<?xi8>
// CHECK-DAG: %[[V1:.*]] = arith.muli %[[M]], %[[J]]
// CHECK-DAG: %[[V2:.*]] = arith.addi %[[V1]], %[[I]]
// CHECK: %[[V3:.*]] = memref.load %[[V0]][%[[V2]]] : memref<?xi8>
// CHECK-NEXT: return %[[V3]] : i8
func.func @dynamic(%buffer: memref<?x?xi8>, %i: index, %j: index, %M: index, %N: index) -> i8 {
  %v = "lego.load"(%buffer, %i, %j, %M, %N) {layout = #lego.layout<"OrderBy(Col(M, N))">}
      : (memref<?x?xi8>, index, index, index, index) -> i8
  return %v : i8
}

// Elements at equal distances are flat memory, too.
// CHECK-LABEL: func.func @strided(
// CHECK-SAME: %[[BUFFER:.*]]: memref<8x8xf32, strided<[16, 2], offset: 4>>, %[[I:.*]]: index
// CHECK: %[[V0:.*]] = memref.collapse_shape %[[BUFFER]] [[0, 1]] : memref<8x8xf32, strided<[16, 2], offset: 4>> into memref<64xf32, strided<[2], offset: 4>>
// CHECK-NEXT: %[[V1:.*]] = memref.load %[[V0]][%[[I]]] : memref<64xf32, strided<[2], offset: 4>>
// CHECK-NEXT: return %[[V1]] : f32
func.func @strided(%buffer: memref<8x8xf32, strided<[16, 2], offset: 4>>, %i: index) -> f32 {
  %v = "lego.load"(%buffer, %i) {layout = #lego.layout<"OrderBy(Row(64))">}
      : (memref<8x8xf32, strided<[16, 2], offset: 4>>, index) -> f32
  return %v : f32
}

// A buffer that is made inside of a loop is made flat there.
// CHECK-LABEL: func.func @inside(
// CHECK-SAME: %[[BUFFER:.*]]: memref<4x8x8xf32>, %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP3]]()[%[[I]], %[[J]]]
// CHECK: scf.for %[[V1:.*]] = %c0 to %c4 step %c1 {
// CHECK-NEXT: %[[V2:.*]] = memref.subview %[[BUFFER]][%[[V1]], 0, 0] [1, 8, 8] [1, 1, 1] : memref<4x8x8xf32> to memref<8x8xf32, strided<[8, 1], offset: ?>>
// CHECK-NEXT: %[[V3:.*]] = memref.alloca() : memref<8x8xf32>
// CHECK-NEXT: %[[V4:.*]] = memref.collapse_shape %[[V3]] [[0, 1]] : memref<8x8xf32> into memref<64xf32>
// CHECK-NEXT: memref.copy %[[V2]], %[[V3]] : memref<8x8xf32, strided<[8, 1], offset: ?>> to memref<8x8xf32>
// CHECK-NEXT: memref.store %cst, %[[V4]][%[[V0]]] : memref<64xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @inside(%buffer: memref<4x8x8xf32>, %i: index, %j: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c4 step %c1 {
    %part = memref.subview %buffer[%k, 0, 0] [1, 8, 8] [1, 1, 1]
        : memref<4x8x8xf32> to memref<8x8xf32, strided<[8, 1], offset: ?>>
    %whole = memref.alloca() : memref<8x8xf32>
    memref.copy %part, %whole : memref<8x8xf32, strided<[8, 1], offset: ?>> to memref<8x8xf32>
    "lego.store"(%zero, %whole, %i, %j) {layout = #lego.layout<"OrderBy(Col(8, 8))">}
        : (f32, memref<8x8xf32>, index, index) -> ()
  }
  return
}
