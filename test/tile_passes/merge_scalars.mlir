// Equal scalars of a kernel are computed once, where the first of them is; those of the host stay
// apart, and so do those that differ in a bound.
// RUN: %legoc %s --emit=placed | FileCheck %s

#A = #lego.layout<"OrderBy(Row(64, 64))">

// CHECK:      gpu.launch
// CHECK:      %[[C8:.*]] = arith.constant 8 : index
// CHECK:      %[[I:.*]] = arith.muli %[[B:.*]], %[[C8]] : index
// CHECK:      "lego.load"(%arg0, %[[I]],
// CHECK:      %[[K:.*]] = arith.muli %[[B]], %[[C8]] {lego.bounds = array<i64: 64>} : index
// CHECK:      scf.for
// CHECK-NOT:  arith
// CHECK:      "lego.store"(%{{.*}}, %arg0, %[[I]],
// CHECK:      "lego.store"(%{{.*}}, %arg0, %[[K]],
func.func @main(%a: memref<4096xf32> {lego.layout = #A, lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %eight = arith.constant 8 : index
    %i = arith.muli %bx, %eight : index
    %x = "lego.load"(%a, %i, %c0) {layout = #A, slice = array<i64: 0, 1>} : (memref<4096xf32>, index, index) -> tensor<8x64xf32>
    %k = arith.muli %bx, %eight {lego.bounds = array<i64: 64>} : index
    scf.for %n = %c0 to %eight step %one {
      %again = arith.constant 8 : index
      %j = arith.muli %bx, %again : index
      "lego.store"(%x, %a, %j, %c0) {layout = #A, slice = array<i64: 0, 1>} : (tensor<8x64xf32>, memref<4096xf32>, index, index) -> ()
    }
    "lego.store"(%x, %a, %k, %c0) {layout = #A, slice = array<i64: 0, 1>} : (tensor<8x64xf32>, memref<4096xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
