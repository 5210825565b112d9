// lego.inv: a flat offset becomes a logical index.
// RUN: %legoc %s | FileCheck %s

// An offset of which nothing is known may be negative: floor division by an arithmetic shift.
// CHECK-LABEL: func.func @shift_and_mask(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.shrsi %[[X]], %c6
// CHECK-DAG: %[[V1:.*]] = arith.andi %[[X]], %c63
// CHECK: return %[[V0]], %[[V1]] : index, index
func.func @shift_and_mask(%x: index) -> (index, index) {
  %0, %1 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Row(32, 64))">} : (index) -> (index, index)
  return %0, %1 : index, index
}

// CHECK-LABEL: func.func @col(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[X]], %c31
// CHECK-DAG: %[[V1:.*]] = arith.shrsi %[[X]], %c5
// CHECK: return %[[V0]], %[[V1]] : index, index
func.func @col(%x: index) -> (index, index) {
  %0, %1 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Col(32, 64))">} : (index) -> (index, index)
  return %0, %1 : index, index
}

// A size that is no power of two: floor division where the offset may be negative ...
// CHECK-LABEL: func.func @signed(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.floordivsi %[[X]], %c12
// CHECK-DAG: %[[V1:.*]] = arith.muli %[[V0]], %c12
// CHECK-DAG: %[[V2:.*]] = arith.subi %[[X]], %[[V1]]
// CHECK: return %[[V0]], %[[V2]] : index, index
func.func @signed(%x: index) -> (index, index) {
  %0, %1 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Row(10, 12))">} : (index) -> (index, index)
  return %0, %1 : index, index
}

// ... and unsigned where its range says that it is not.
// CHECK-LABEL: func.func @unsigned(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.remui %[[X]], %c120
// CHECK-DAG: %[[V1:.*]] = arith.divui %[[V0]], %c12
// CHECK-DAG: %[[V2:.*]] = arith.remui %[[V0]], %c12
// CHECK: return %[[V1]], %[[V2]] : index, index
func.func @unsigned(%x: index) -> (index, index) {
  %c120 = arith.constant 120 : index
  %offset = arith.remui %x, %c120 : index
  %0, %1 = "lego.inv"(%offset) {layout = #lego.layout<"OrderBy(Row(10, 12))">} : (index) -> (index, index)
  return %0, %1 : index, index
}

// CHECK-LABEL: func.func @constant
// CHECK: return %c8, %c4 : index, index
func.func @constant() -> (index, index) {
  %c100 = arith.constant 100 : index
  %0, %1 = "lego.inv"(%c100) {layout = #lego.layout<"OrderBy(Row(10, 12))">} : (index) -> (index, index)
  return %0, %1 : index, index
}

// CHECK-LABEL: func.func @one_of_two(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[X]], %c63
// CHECK: return %[[V0]]
func.func @one_of_two(%x: index) -> index {
  %0, %1 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Row(32, 64))">} : (index) -> (index, index)
  return %1 : index
}
