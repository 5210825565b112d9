// Windows: loads, offsets and masks through layouts in which an element may have several indices.
// RUN: %legoc %s | FileCheck %s

#zero = #lego.layout<"OrderBy(Row(16, 64)).Window([16, 64, 3, 3], (y, x, i, j) -> (y + i - 1, x + j - 1), zero)">
#clamp = #lego.layout<"OrderBy(Row(16, 64)).Window([16, 64, 3], (y, x, i) -> (y + i - 1, x), clamp)">
#wrap = #lego.layout<"OrderBy(Row(16, 64)).Window([16, 64, 3], (y, x, i) -> (y, x + i - 1), wrap)">
#wide = #lego.layout<"OrderBy(Row(N, 64)).Window([N, 62, 3], (y, x, i) -> (y, x + i), zero)">
#padded = #lego.layout<"OrderBy(Row(32, 33)).Window([32, 32])">
// An index is inside where each of its coordinates is, from below and from above.
// CHECK-LABEL: func.func @mask(
// CHECK: %[[Y:.*]] = affine.apply
// CHECK-DAG: arith.cmpi slt, %[[Y]], %c17
// CHECK-DAG: arith.cmpi sgt, %[[Y]], %c0
// CHECK: %[[X:.*]] = affine.apply
// CHECK-DAG: arith.cmpi slt, %[[X]], %c65
// CHECK-DAG: arith.cmpi sgt, %[[X]], %c0
// CHECK: return
func.func @mask(%y: index, %x: index, %i: index, %j: index) -> i1 {
  %0 = "lego.mask"(%y, %x, %i, %j) {layout = #zero} : (index, index, index, index) -> i1
  return %0 : i1
}
// CHECK-LABEL: func.func @offset(
// CHECK-NEXT: %[[AT:.*]] = affine.apply
// CHECK-NEXT: return %[[AT]]
func.func @offset(%y: index, %x: index, %i: index, %j: index) -> index {
  %0 = "lego.apply"(%y, %x, %i, %j) {layout = #zero} : (index, index, index, index) -> index
  return %0 : index
}
// The index is in the window, so its own element is in the tensor.
// CHECK-LABEL: func.func @middle(
// CHECK-NOT: cmpi
// CHECK: return
func.func @middle(%a: memref<16x64xf32>, %y: index, %x: index) -> f32 {
  %c1 = arith.constant 1 : index
  %0 = "lego.load"(%a, %y, %x, %c1, %c1) {layout = #zero} : (memref<16x64xf32>, index, index, index, index) -> f32
  return %0 : f32
}
// The neighbour on the left is missing on one side only.
// CHECK-LABEL: func.func @left(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[INSIDE:.*]] = arith.cmpi sgt, %{{.*}}, %c0
// CHECK-NOT: cmpi
// CHECK: scf.if %[[INSIDE]]
// CHECK: scf.yield %[[ONE]]
func.func @left(%a: memref<16x64xf32>, %y: index, %x: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = "lego.load"(%a, %y, %x, %c1, %c0) {layout = #zero, other = 1.0 : f32} : (memref<16x64xf32>, index, index, index, index) -> f32
  return %0 : f32
}
// CHECK-LABEL: func.func @clamp(
// CHECK: arith.minsi %{{.*}}, %c15
// CHECK: arith.maxsi %{{.*}}, %c0
// CHECK-NOT: scf.if
// CHECK: return
func.func @clamp(%a: memref<16x64xf32>, %y: index, %x: index, %i: index) -> f32 {
  %0 = "lego.load"(%a, %y, %x, %i) {layout = #clamp} : (memref<16x64xf32>, index, index, index) -> f32
  return %0 : f32
}
// CHECK-LABEL: func.func @wrap(
// CHECK: arith.andi %{{.*}}, %c63
// CHECK-NOT: scf.if
// CHECK: return
func.func @wrap(%a: memref<16x64xf32>, %y: index, %x: index, %i: index) -> f32 {
  %0 = "lego.load"(%a, %y, %x, %i) {layout = #wrap} : (memref<16x64xf32>, index, index, index) -> f32
  return %0 : f32
}
// All columns are proven to be in the tensor, whatever the number of rows.
// CHECK-LABEL: func.func @inside(
// CHECK-NOT: cmpi
// CHECK: memref.load
// CHECK-NEXT: return
func.func @inside(%a: memref<?x64xf32>, %y: index, %x: index, %i: index, %n: index) -> f32 {
  %0 = "lego.load"(%a, %y, %x, %i, %n) {layout = #wide} : (memref<?x64xf32>, index, index, index, index) -> f32
  return %0 : f32
}
// CHECK-LABEL: func.func @taps(
// CHECK-COUNT-3: memref.load
// CHECK: vector.from_elements
func.func @taps(%a: memref<16x64xf32>, %y: index, %x: index) -> vector<3xf32> {
  %0 = "lego.load"(%a, %y, %x) {layout = #wrap, slice = array<i64: 2>} : (memref<16x64xf32>, index, index) -> vector<3xf32>
  return %0 : vector<3xf32>
}
// Padded rows have an offset for each element, and more offsets than elements.
// CHECK-LABEL: func.func @padded(
// CHECK: %[[AT:.*]] = affine.apply
// CHECK: return %[[AT]], %c1056
func.func @padded(%i: index, %j: index) -> (index, index) {
  "lego.check"() {layout = #padded, injective} : () -> ()
  %0 = "lego.apply"(%i, %j) {layout = #padded} : (index, index) -> index
  %1 = "lego.size"() {layout = #padded} : () -> index
  return %0, %1 : index, index
}
