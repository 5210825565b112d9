// lego.load and lego.store of a slice: vectors, in as few accesses as are proven to do.
// RUN: %legoc %s | FileCheck %s

#A = #lego.layout<"OrderBy(Row(M, N)).TileBy([M/16, N/32], [16, 32])">
#T = #lego.layout<"OrderBy(Row(64, 64)).TileBy([32, 16], [2, 4])">
#C = #lego.layout<"OrderBy(Col(8, 4))">
#W = #lego.layout<"OrderBy(GenP([8, 16], swizzle(8, 1, 2)))">
#P = #lego.layout<"OrderBy(Row(100, 68)).TileBy([2, 9], [64, 8])">
#Q = #lego.layout<"OrderBy(Row(100, 64)).TileBy([2, 8], [64, 8])">

// One row of a tile lies in one piece, whatever the matrix.
// CHECK-LABEL: func.func @row(
// CHECK-SAME: %[[A:.*]]: memref<?xf32>, %[[B:.*]]: memref<?xf32>
// CHECK: %[[V:.*]] = vector.load %[[A]][%[[AT:.*]]] : memref<?xf32>, vector<32xf32>
// CHECK-NEXT: vector.store %[[V]], %[[B]][%[[AT]]] : memref<?xf32>, vector<32xf32>
// CHECK-NEXT: return
func.func @row(%a: memref<?xf32>, %b: memref<?xf32>, %m: index, %n: index, %i: index, %M: index, %N: index) {
  %v = "lego.load"(%a, %m, %n, %i, %M, %N) {layout = #A, slice = array<i64: 3>}
      : (memref<?xf32>, index, index, index, index, index) -> vector<32xf32>
  "lego.store"(%v, %b, %m, %n, %i, %M, %N) {layout = #A, slice = array<i64: 3>}
      : (vector<32xf32>, memref<?xf32>, index, index, index, index, index) -> ()
  return
}

// A whole tile that is in one piece: two dimensions are one.
// CHECK-LABEL: func.func @whole(
// CHECK: %[[V:.*]] = vector.load %{{.*}}[%c0] : memref<32xf16>, vector<32xf16>
// CHECK-NEXT: %[[W:.*]] = vector.shape_cast %[[V]] : vector<32xf16> to vector<4x8xf16>
// CHECK-NEXT: return %[[W]]
func.func @whole(%a: memref<32xf16>) -> vector<4x8xf16> {
  %v = "lego.load"(%a) {layout = #lego.layout<"OrderBy(Row(4, 8))">, slice = array<i64: 0, 1>}
      : (memref<32xf16>) -> vector<4x8xf16>
  return %v : vector<4x8xf16>
}

// Rows of a tile are runs; where they lie, differs by a constant.
// CHECK-LABEL: func.func @tile(
// CHECK-DAG: %[[AT:.*]] = affine.apply
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[AT]], %c64
// CHECK: %[[V0:.*]] = vector.load %[[A:.*]][%[[AT]]] : memref<4096xf32>, vector<4xf32>
// CHECK-NEXT: %[[V1:.*]] = vector.load %[[A]][%[[NEXT]]] : memref<4096xf32>, vector<4xf32>
// CHECK-NEXT: %[[R0:.*]] = vector.insert_strided_slice %[[V0]], %cst {offsets = [0], strides = [1]}
// CHECK-NEXT: %[[R1:.*]] = vector.insert_strided_slice %[[V1]], %[[R0]] {offsets = [4], strides = [1]}
// CHECK-NEXT: %[[R:.*]] = vector.shape_cast %[[R1]] : vector<8xf32> to vector<2x4xf32>
// CHECK-NEXT: return %[[R]]
func.func @tile(%a: memref<4096xf32>, %m: index, %n: index) -> vector<2x4xf32> {
  %v = "lego.load"(%a, %m, %n) {layout = #T, slice = array<i64: 2, 3>}
      : (memref<4096xf32>, index, index) -> vector<2x4xf32>
  return %v : vector<2x4xf32>
}

// CHECK-LABEL: func.func @tile_store(
// CHECK-SAME: %[[A:.*]]: memref<4096xf32>, %[[V:.*]]: vector<2x4xf32>
// CHECK: %[[R:.*]] = vector.shape_cast %[[V]] : vector<2x4xf32> to vector<8xf32>
// CHECK: %[[V0:.*]] = vector.extract_strided_slice %[[R]] {offsets = [0], sizes = [4], strides = [1]}
// CHECK: %[[V1:.*]] = vector.extract_strided_slice %[[R]] {offsets = [4], sizes = [4], strides = [1]}
// CHECK: vector.store %[[V0]], %[[A]]
// CHECK-NEXT: vector.store %[[V1]], %[[A]]
func.func @tile_store(%a: memref<4096xf32>, %v: vector<2x4xf32>, %m: index, %n: index) {
  "lego.store"(%v, %a, %m, %n) {layout = #T, slice = array<i64: 2, 3>}
      : (vector<2x4xf32>, memref<4096xf32>, index, index) -> ()
  return
}

// The elements of a row of a column-major matrix are apart.
// CHECK-LABEL: func.func @apart(
// CHECK-SAME: %[[A:.*]]: memref<32xf32>, %[[I:.*]]: index
// CHECK-DAG: %[[AT1:.*]] = arith.addi %[[I]], %c8
// CHECK-DAG: %[[AT2:.*]] = arith.addi %[[I]], %c16
// CHECK-DAG: %[[AT3:.*]] = arith.addi %[[I]], %c24
// CHECK: %[[V0:.*]] = memref.load %[[A]][%[[I]]]
// CHECK-NEXT: %[[V1:.*]] = memref.load %[[A]][%[[AT1]]]
// CHECK-NEXT: %[[V2:.*]] = memref.load %[[A]][%[[AT2]]]
// CHECK-NEXT: %[[V3:.*]] = memref.load %[[A]][%[[AT3]]]
// CHECK-NEXT: %[[V:.*]] = vector.from_elements %[[V0]], %[[V1]], %[[V2]], %[[V3]] : vector<4xf32>
// CHECK-NEXT: return %[[V]]
func.func @apart(%a: memref<32xf32>, %i: index) -> vector<4xf32> {
  %v = "lego.load"(%a, %i) {layout = #C, slice = array<i64: 1>} : (memref<32xf32>, index) -> vector<4xf32>
  return %v : vector<4xf32>
}

// A swizzle moves pieces of eight.
// CHECK-LABEL: func.func @swizzled(
// CHECK-COUNT-2: vector.load %{{.*}} : memref<128xf16>, vector<8xf16>
// CHECK-NOT: load
// CHECK: return
func.func @swizzled(%a: memref<128xf16>, %i: index) -> vector<16xf16> {
  %v = "lego.load"(%a, %i) {layout = #W, slice = array<i64: 1>} : (memref<128xf16>, index) -> vector<16xf16>
  return %v : vector<16xf16>
}

// Where a part of a row may be padding, what exists or not together is accessed together.
// CHECK-LABEL: func.func @padded(
// CHECK-COUNT-2: scf.if %{{.*}} -> (vector<4xf32>) {
// CHECK-NOT: scf.if
// CHECK: return
func.func @padded(%a: memref<6800xf32>, %m: index, %n: index, %i: index) -> vector<8xf32> {
  %v = "lego.load"(%a, %m, %n, %i) {layout = #P, slice = array<i64: 3>}
      : (memref<6800xf32>, index, index, index) -> vector<8xf32>
  return %v : vector<8xf32>
}

// One question for a whole row, and for all elements of a column of a matrix that is padded in
// the other dimension.
// CHECK-LABEL: func.func @once(
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: %[[V:.*]] = vector.load
// CHECK-NEXT: vector.store %[[V]]
// CHECK-NEXT: }
// CHECK-NOT: scf.if
// CHECK: return
func.func @once(%a: memref<6400xf32>, %m: index, %n: index, %i: index) {
  %v = "lego.load"(%a, %m, %n, %i) {layout = #Q, slice = array<i64: 3>}
      : (memref<6400xf32>, index, index, index) -> vector<8xf32>
  "lego.store"(%v, %a, %m, %n, %i) {layout = #Q, slice = array<i64: 3>}
      : (vector<8xf32>, memref<6400xf32>, index, index, index) -> ()
  return
}

// CHECK-LABEL: func.func @shared_guard(
// CHECK: %[[V:.*]]:2 = scf.if %{{.*}} -> (f32, f32) {
// CHECK-NEXT: memref.load
// CHECK-NEXT: memref.load
// CHECK: } else {
// CHECK: vector.from_elements %[[V]]#0, %[[V]]#1 : vector<2xf32>
func.func @shared_guard(%a: memref<14xf32>, %m: index, %i: index) -> vector<2xf32> {
  %v = "lego.load"(%a, %m, %i) {layout = #lego.layout<"OrderBy(Col(7, 2)).TileBy([2, 1], [4, 2])">, slice = array<i64: 1, 3>}
      : (memref<14xf32>, index, index) -> vector<1x2xf32>
  %w = vector.shape_cast %v : vector<1x2xf32> to vector<2xf32>
  return %w : vector<2xf32>
}

// Memory that is not dense, and elements below a byte, are accessed one by one.
// CHECK-LABEL: func.func @one_by_one(
// CHECK-NOT: vector.load
// CHECK-COUNT-4: memref.load %{{.*}} : memref<4xf32, strided<[2]>>
// CHECK-COUNT-4: memref.load %{{.*}} : memref<4xi1>
// CHECK-NOT: vector.load
// CHECK: return
func.func @one_by_one(%a: memref<4xf32, strided<[2]>>, %b: memref<4xi1>) -> (vector<4xf32>, vector<4xi1>) {
  %v = "lego.load"(%a) {layout = #lego.layout<"OrderBy(Row(4))">, slice = array<i64: 0>}
      : (memref<4xf32, strided<[2]>>) -> vector<4xf32>
  %w = "lego.load"(%b) {layout = #lego.layout<"OrderBy(Row(4))">, slice = array<i64: 0>}
      : (memref<4xi1>) -> vector<4xi1>
  return %v, %w : vector<4xf32>, vector<4xi1>
}
