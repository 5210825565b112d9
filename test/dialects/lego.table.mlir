// Numbers out of tables, and buffers out of several.
// RUN: %legoc %s | FileCheck %s
// RUN: not %legoc %S/Inputs/lego.table-invalid.mlir 2>&1 | FileCheck %s --check-prefix=INVALID

// Equal tables are one; of one number there is none.
// CHECK-DAG: memref.global "private" constant @numbers_0 : memref<3xi32> = dense<[64, 0, 128]>
// CHECK-NOT: @numbers_1

// CHECK-LABEL: func.func @tables(
// CHECK-SAME: %[[I:.*]]: index) -> (index, index, index)
// CHECK: %[[T:.*]] = memref.get_global @numbers_0 : memref<3xi32>
// CHECK: %[[N:.*]] = memref.load %[[T]][%[[I]]] : memref<3xi32>
// CHECK-DAG: %[[X:.*]] = arith.index_castui %[[N]] {lego.bounds = array<i64: 129>} : i32 to index
// CHECK: return %[[X]], %{{.*}}, %c7 : index, index, index
func.func @tables(%i: index) -> (index, index, index) {
  %0 = "lego.table"(%i) {values = array<i64: 64, 0, 128>} : (index) -> index
  %1 = "lego.table"(%i) {values = array<i64: 64, 0, 128>} : (index) -> index
  %2 = "lego.table"(%i) {values = array<i64: 7, 7>} : (index) -> index
  return %0, %1, %2 : index, index, index
}

// What a number is at most is known of it: a layout of it takes no division here.
// CHECK-LABEL: func.func @bounded(
// CHECK-NOT: divui
// CHECK-NOT: floordivsi
// CHECK: return
func.func @bounded(%i: index) -> index {
  %0 = "lego.table"(%i) {values = array<i64: 3, 5>} : (index) -> index
  %1, %2 = "lego.inv"(%0) {layout = #lego.layout<"OrderBy(Row(4, 8))">} : (index) -> (index, index)
  return %1 : index
}

// CHECK-LABEL: func.func @picked(
// CHECK-SAME: %[[I:.*]]: index, %[[A:.*]]: memref<?xf32>, %[[B:.*]]: memref<?xf32>
// CHECK-DAG: %[[IS:.*]] = arith.cmpi eq, %[[I]], %c1
// CHECK-DAG: %[[P:.*]] = arith.select %[[IS]], %[[B]], %[[A]] : memref<?xf32>
// CHECK: memref.load %[[P]][%[[I]]]
func.func @picked(%i: index, %a: memref<?xf32>, %b: memref<?xf32>) -> f32 {
  %p = "lego.pick"(%i, %a, %b) : (index, memref<?xf32>, memref<?xf32>) -> memref<?xf32>
  %x = "lego.load"(%p, %i) {layout = #lego.layout<"OrderBy(Row(8))">} : (memref<?xf32>, index) -> f32
  return %x : f32
}

// INVALID: lego.table-invalid.mlir:{{[0-9:]+}} error: 'lego.table': the values are array<i64: -1>
// INVALID: hint: numbers from 0 to 2147483647
