// Partial tiles: the mask, and loads and stores under it.
// RUN: %legoc %s | FileCheck %s

#A = #lego.layout<"OrderBy(Row(100, 64)).TileBy([ceildiv(100, 32), 2], [32, 32])">
#S = #lego.layout<"OrderBy(Row(M, N)).TileBy([ceildiv(M, 32), ceildiv(N, 32)], [32, 32])">
#whole = #lego.layout<"OrderBy(Row(96, 64)).TileBy([ceildiv(96, 32), ceildiv(64, 32)], [32, 32])">

// CHECK-DAG: #[[ROW:.*]] = affine_map<()[s0, s1] -> (s0 * 32 + s1)>
// CHECK-DAG: #[[AT:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * 2048 + s1 * 32 + s2 * 64 + s3)>

// Only the rows are padded, so only they are compared.
// CHECK-LABEL: func.func @mask(
// CHECK-SAME: %[[M:.*]]: index, %[[N:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[ROW]]()[%[[M]], %[[I]]]
// CHECK-DAG: %[[V1:.*]] = arith.cmpi slt, %[[V0]], %c100
// CHECK: return %[[V1]] : i1
func.func @mask(%m: index, %n: index, %i: index, %j: index) -> i1 {
  %exists = "lego.mask"(%m, %n, %i, %j) {layout = #A} : (index, index, index, index) -> i1
  return %exists : i1
}

// Sizes that are operands are compared with.
// CHECK-LABEL: func.func @operands(
// CHECK-SAME: %[[M:.*]]: index, %[[N:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[SM:.*]]: index, %[[SN:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[ROW]]()[%[[M]], %[[I]]]
// CHECK-DAG: %[[V1:.*]] = arith.cmpi slt, %[[V0]], %[[SM]]
// CHECK-DAG: %[[V2:.*]] = affine.apply #[[ROW]]()[%[[N]], %[[J]]]
// CHECK-DAG: %[[V3:.*]] = arith.cmpi slt, %[[V2]], %[[SN]]
// CHECK-DAG: %[[V4:.*]] = arith.andi %[[V1]], %[[V3]] : i1
// CHECK: return %[[V4]]
func.func @operands(%m: index, %n: index, %i: index, %j: index, %M: index, %N: index) -> (i1, index) {
  %exists = "lego.mask"(%m, %n, %i, %j, %M, %N) {layout = #S}
      : (index, index, index, index, index, index) -> i1
  %offset = "lego.apply"(%m, %n, %i, %j, %M, %N) {layout = #S}
      : (index, index, index, index, index, index) -> index
  return %exists, %offset : i1, index
}

// Where the tiles divide the tensor there is nothing to ask.
// CHECK-LABEL: func.func @divided(
// CHECK: return %true
func.func @divided(%m: index, %n: index, %i: index, %j: index) -> i1 {
  %exists = "lego.mask"(%m, %n, %i, %j) {layout = #whole} : (index, index, index, index) -> i1
  return %exists : i1
}

// CHECK-LABEL: func.func @accesses(
// CHECK: %[[BUFFER:.*]] = memref.collapse_shape
// CHECK-DAG: %[[OFFSET:.*]] = affine.apply #[[AT]]
// CHECK-DAG: %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %c100
// The load and the store ask the same, and so they ask once.
// CHECK: scf.if %[[EXISTS]] {
// CHECK-NEXT: %[[VALUE:.*]] = memref.load %[[BUFFER]][%[[OFFSET]]] : memref<6400xf32>
// CHECK-NEXT: memref.store %[[VALUE]], %[[BUFFER]][%[[OFFSET]]] : memref<6400xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @accesses(%a: memref<100x64xf32>, %m: index, %n: index, %i: index, %j: index) {
  %v = "lego.load"(%a, %m, %n, %i, %j) {layout = #A}
      : (memref<100x64xf32>, index, index, index, index) -> f32
  "lego.store"(%v, %a, %m, %n, %i, %j) {layout = #A}
      : (f32, memref<100x64xf32>, index, index, index, index) -> ()
  return
}

// What is read of the padding is named.
// CHECK-LABEL: func.func @other(
// CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK: scf.if
// CHECK: else
// CHECK-NEXT: scf.yield %[[NONE]] : i32
func.func @other(%a: memref<100x64xi32>, %m: index, %n: index, %i: index, %j: index) -> i32 {
  %v = "lego.load"(%a, %m, %n, %i, %j) {layout = #A, other = -1 : i32}
      : (memref<100x64xi32>, index, index, index, index) -> i32
  return %v : i32
}

// No guard where the place is proven to be inside, nothing at all where it is outside.
// CHECK-LABEL: func.func @known(
// CHECK-NOT: scf.if
// CHECK: %[[V:.*]] = memref.load
// CHECK-NOT: {{memref.load|memref.store}}
// CHECK: return %[[V]], %cst : f32, f32
func.func @known(%a: memref<100x64xf32>, %j: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %inside = "lego.load"(%a, %c3, %c0, %c3, %j) {layout = #A}
      : (memref<100x64xf32>, index, index, index, index) -> f32
  %outside = "lego.load"(%a, %c3, %c0, %c4, %j) {layout = #A}
      : (memref<100x64xf32>, index, index, index, index) -> f32
  "lego.store"(%inside, %a, %c3, %c0, %c4, %j) {layout = #A}
      : (f32, memref<100x64xf32>, index, index, index, index) -> ()
  return %inside, %outside : f32, f32
}
