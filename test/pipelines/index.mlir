// index.pipeline: fold what the lowering left, and share what is common.
// RUN: %legoc %s | FileCheck %s

// CHECK-LABEL: func.func @folded(
// CHECK-SAME: %[[X:.*]]: index
func.func @folded(%x: index) -> (index, index, index) {
  // CHECK-DAG: %[[C21:.*]] = arith.constant 21 : index
  // CHECK-DAG: %[[C7:.*]] = arith.constant 7 : index
  // CHECK: %[[J:.*]] = arith.andi %[[X]], %[[C7]]
  // CHECK-NOT: arith.andi
  // CHECK: return %[[J]], %[[J]], %[[C21]]
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %0, %1 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Row(4, 8))">} : (index) -> (index, index)
  %2, %3 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Row(2, 2, 8)).GroupBy([4, 8])">} : (index) -> (index, index)
  %4 = "lego.apply"(%c2, %c5) {layout = #lego.layout<"OrderBy(Row(4, 8))">} : (index, index) -> index
  return %1, %3, %4 : index, index, index
}
