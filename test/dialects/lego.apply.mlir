// lego.apply: a logical index becomes a flat offset.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<()[s0, s1] -> (s0 * 64 + s1)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<()[s0, s1] -> (s0 + s1 * 32)>
// CHECK-DAG: #[[MAP2:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * 32768 + s1 * 32 + s2 * 512 + s3)>

#row   = #lego.layout<"OrderBy(Row(32, 64))">
#col   = #lego.layout<"OrderBy(Col(32, 64))">
#tiles = #lego.layout<"OrderBy(Row(256, 512)).TileBy([4, 16], [64, 32])">

// CHECK-LABEL: func.func @row(
// CHECK-SAME: %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP]]()[%[[I]], %[[J]]]
// CHECK: return %[[V0]]
func.func @row(%i: index, %j: index) -> index {
  %0 = "lego.apply"(%i, %j) {layout = #row} : (index, index) -> index
  return %0 : index
}

// CHECK-LABEL: func.func @col(
// CHECK-SAME: %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP1]]()[%[[I]], %[[J]]]
// CHECK: return %[[V0]]
func.func @col(%i: index, %j: index) -> index {
  %0 = "lego.apply"(%i, %j) {layout = #col} : (index, index) -> index
  return %0 : index
}

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[A:.*]]: index, %[[B:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP2]]()[%[[A]], %[[B]], %[[I]], %[[J]]]
// CHECK: return %[[V0]]
func.func @tiles(%a: index, %b: index, %i: index, %j: index) -> index {
  %0 = "lego.apply"(%a, %b, %i, %j) {layout = #tiles} : (index, index, index, index) -> index
  return %0 : index
}

// A constant index is folded; so is one that a constant of another operation gives.
// CHECK-LABEL: func.func @constants
// CHECK: return %c197, %c168 : index, index
func.func @constants() -> (index, index) {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.addi %c3, %c5 : index
  %0 = "lego.apply"(%c3, %c5) {layout = #row} : (index, index) -> index
  %1 = "lego.apply"(%c8, %c5) {layout = #col} : (index, index) -> index
  return %0, %1 : index, index
}

// What goes in by one layout and out by another is simplified as a whole.
// CHECK-LABEL: func.func @through(
// CHECK-SAME: %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[I]], %c31
// CHECK-DAG: %[[V1:.*]] = arith.andi %[[J]], %c63
// CHECK: return %[[V0]], %[[V1]] : index, index
func.func @through(%i: index, %j: index) -> (index, index) {
  %c31 = arith.constant 31 : index
  %c63 = arith.constant 63 : index
  %row = arith.andi %i, %c31 : index
  %column = arith.andi %j, %c63 : index
  %flat = "lego.apply"(%row, %column) {layout = #row} : (index, index) -> index
  %0, %1 = "lego.inv"(%flat) {layout = #row} : (index) -> (index, index)
  return %0, %1 : index, index
}

// An offset that only lego operations use is not computed.
// CHECK-LABEL: func.func @unused(
// CHECK-SAME: %[[I:.*]]: index, %[[J:.*]]: index
// CHECK: return
func.func @unused(%i: index, %j: index) {
  %0 = "lego.apply"(%i, %j) {layout = #row} : (index, index) -> index
  return
}
