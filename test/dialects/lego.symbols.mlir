// Sizes that are not known: each symbol of a layout is an operand, and what the text says of them
// is used. `M/128` says that 128 divides M.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<()[s0, s1] -> (s0 * 128 + s1)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<()[s0, s1] -> (s0 * 96 + s1)>
// CHECK-DAG: #[[MAP2:.*]] = affine_map<(d0) -> (d0 * 2 + 1)>

// No division is left: M/128 tiles of 128 are M.
// CHECK-LABEL: func.func @tiled(
// CHECK-SAME: %[[A:.*]]: index, %[[B:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[M:.*]]: index, %[[K:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.muli %[[A]], %c128
// CHECK-DAG: %[[V1:.*]] = arith.addi %[[V0]], %[[I]]
// CHECK-DAG: %[[V2:.*]] = arith.muli %[[V1]], %[[K]]
// CHECK-DAG: %[[V3:.*]] = arith.muli %[[B]], %c64
// CHECK-DAG: %[[V4:.*]] = arith.addi %[[V2]], %[[V3]]
// CHECK-DAG: %[[V5:.*]] = arith.addi %[[V4]], %[[J]]
// CHECK: return %[[V5]]
func.func @tiled(%a: index, %b: index, %i: index, %j: index, %m: index, %k: index) -> index {
  %0 = "lego.apply"(%a, %b, %i, %j, %m, %k)
      {layout = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])">}
      : (index, index, index, index, index, index) -> index
  return %0 : index
}

// The divisor may be a symbol, too.
// CHECK-LABEL: func.func @symbolic_tile(
// CHECK-SAME: %[[A:.*]]: index, %[[I:.*]]: index, %[[M:.*]]: index, %[[BM:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.muli %[[BM]], %[[A]]
// CHECK-DAG: %[[V1:.*]] = arith.addi %[[V0]], %[[I]]
// CHECK: return %[[V1]]
func.func @symbolic_tile(%a: index, %i: index, %m: index, %bm: index) -> index {
  %0 = "lego.apply"(%a, %i, %m, %bm) {layout = #lego.layout<"OrderBy(Row(M)).TileBy([M/BM], [BM])">}
      : (index, index, index, index) -> index
  return %0 : index
}

// Two layouts say different things of one value: both hold in both.
// CHECK-LABEL: func.func @two_facts(
// CHECK-SAME: %[[A:.*]]: index, %[[I:.*]]: index, %[[M:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP]]()[%[[A]], %[[I]]]
// CHECK-DAG: %[[V1:.*]] = affine.apply #[[MAP1]]()[%[[A]], %[[I]]]
// CHECK: return %[[V0]], %[[V1]] : index, index
func.func @two_facts(%a: index, %i: index, %m: index) -> (index, index) {
  %0 = "lego.apply"(%a, %i, %m) {layout = #lego.layout<"OrderBy(Row(M)).TileBy([M/128], [128])">}
      : (index, index, index) -> index
  %1 = "lego.apply"(%a, %i, %m) {layout = #lego.layout<"OrderBy(Row(K)).TileBy([K/96], [96])">}
      : (index, index, index) -> index
  return %0, %1 : index, index
}

// A constant takes the symbol's place, and so does arithmetic that is seen to keep what is said.
// CHECK-LABEL: func.func @known_values(
// CHECK-SAME: %[[I:.*]]: index, %[[J:.*]]: index, %[[N:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP]]()[%[[I]], %[[J]]]
// CHECK-DAG: %[[V1:.*]] = arith.muli %[[N]], %c512
// CHECK-DAG: %[[V2:.*]] = arith.shrui %[[V1]], %c7
// CHECK: return %[[V0]], %[[V2]] : index, index
func.func @known_values(%i: index, %j: index, %n: index) -> (index, index) {
  %c512 = arith.constant 512 : index
  %0 = "lego.apply"(%i, %j, %c512) {layout = #lego.layout<"OrderBy(Row(M)).TileBy([M/128], [128])">}
      : (index, index, index) -> index
  %m = arith.muli %n, %c512 : index
  %1 = "lego.dim"(%m) {layout = #lego.layout<"OrderBy(Row(M)).TileBy([M/128], [128])">, dim = 0}
      : (index) -> index
  return %0, %1 : index, index
}

// The size of one layout is a symbol of another.
// CHECK-LABEL: func.func @sizes_of_layouts(
// CHECK-SAME: %[[X:.*]]: index, %[[M:.*]]: index, %[[N:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.shrui %[[N]], %c5
// CHECK-DAG: %[[V1:.*]] = arith.floordivsi %[[X]], %[[V0]]
// CHECK-DAG: %[[V2:.*]] = arith.muli %[[V1]], %[[V0]]
// CHECK-DAG: %[[V3:.*]] = arith.subi %[[X]], %[[V2]]
// CHECK: return %[[V1]], %[[V3]] : index, index
func.func @sizes_of_layouts(%x: index, %m: index, %n: index) -> (index, index) {
  %rows = "lego.dim"(%m, %n) {layout = #lego.layout<"OrderBy(Row(M, N)).TileBy([M/64, N/32], [64, 32])">, dim = 0}
      : (index, index) -> index
  %columns = "lego.dim"(%m, %n) {layout = #lego.layout<"OrderBy(Row(M, N)).TileBy([M/64, N/32], [64, 32])">, dim = 1}
      : (index, index) -> index
  %0, %1 = "lego.inv"(%x, %rows, %columns) {layout = #lego.layout<"OrderBy(Row(P, Q))">}
      : (index, index, index) -> (index, index)
  return %0, %1 : index, index
}

// Operands follow the order in which the text first names the symbols.
// CHECK-LABEL: func.func @order(
// CHECK-SAME: %[[Z:.*]]: index, %[[Y:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.addi %[[Y]], %c1
// CHECK-DAG: %[[V1:.*]] = arith.muli %[[V0]], %[[Z]]
// CHECK: return %[[V1]]
func.func @order(%z: index, %y: index) -> index {
  %0 = "lego.dim"(%z, %y) {layout = #lego.layout<"OrderBy(Row(Z*Y + Z, 2))">, dim = 0} : (index, index) -> index
  return %0 : index
}

// A loop to a size stays below it.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[BUFFER:.*]]: memref<?xf32>, %[[M:.*]]: index
// CHECK: scf.for %[[V0:.*]] = %c0 to %[[M]] step %c1 {
// CHECK-DAG: %[[V1:.*]] = affine.apply #[[MAP2]](%[[V0]])
// CHECK: memref.store %cst, %[[BUFFER]][%[[V1]]] : memref<?xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @loop(%buffer: memref<?xf32>, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %m step %c1 {
    %flat = "lego.apply"(%c1, %i, %m) {layout = #lego.layout<"OrderBy(Row(2, M))">} : (index, index, index) -> index
    %j, %k = "lego.inv"(%flat, %m) {layout = #lego.layout<"OrderBy(Row(2, M))">} : (index, index) -> (index, index)
    "lego.store"(%zero, %buffer, %k, %j, %m) {layout = #lego.layout<"OrderBy(Row(M, 2))">}
        : (f32, memref<?xf32>, index, index, index) -> ()
  }
  return
}
