// Every tile gets a layout: loads and stores are coalesced, a reduction's result is the quotient.
// RUN: %legoc %s --emit=placed | FileCheck %s

#A = #lego.layout<"OrderBy(Row(8, 256))">

// A row of 256 f32 is a warp's: 2 vectors of 4 in each lane. The maximum is in all 32 lanes.
// CHECK:     %[[X:.*]] = "lego.load"(%arg0, {{.*}}) {{.*}} -> tensor<4x256xf32, #lego.layout<"OrderBy(Row(4, 32, 8)).OrderBy(RegP([4, 2, 32, 4], [0, 2, 1, 3])).GroupBy([4, 256])">>
// CHECK-NEXT: %[[M:.*]] = "lego.reduce"(%[[X]]) {{.*}} -> tensor<4x1xf32, #lego.layout<"OrderBy(Row(4, 32, 1)).GroupBy([4, 1, 32])">>
// CHECK-NEXT: %[[R:.*]] = math.exp2 %[[M]]
// CHECK-NEXT: %[[B:.*]] = "lego.broadcast"(%[[R]]) {{.*}} -> tensor<4x256xf32, #lego.layout<"OrderBy(Row(4, 32, 8)).OrderBy(RegP([4, 2, 32, 4], [0, 2, 1, 3])).GroupBy([4, 256])">>
// CHECK-NEXT: %[[Y:.*]] = arith.subf %[[X]], %[[B]]
// CHECK-NOT:  lego.convert
// CHECK:      "lego.store"(%[[Y]], %arg1
func.func @rows(%a: memref<2048xf32> {lego.layout = #A, lego.alignment = 16 : i64},
                %o: memref<2048xf32> {lego.layout = #A, lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %i = arith.muli %bx, %c4 : index
    %x = "lego.load"(%a, %i, %c0) {layout = #A, slice = array<i64: 0, 1>} : (memref<2048xf32>, index, index) -> tensor<4x256xf32>
    %m = "lego.reduce"(%x) {kind = "max", dim = 1 : i64} : (tensor<4x256xf32>) -> tensor<4x1xf32>
    %b = "lego.broadcast"(%m) : (tensor<4x1xf32>) -> tensor<4x256xf32>
    %r = math.exp2 %b : tensor<4x256xf32>
    %y = arith.subf %x, %r : tensor<4x256xf32>
    "lego.store"(%y, %o, %i, %c0) {layout = #A, slice = array<i64: 0, 1>} : (tensor<4x256xf32>, memref<2048xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
