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

#Q = #lego.layout<"OrderBy(Row(64, 64))">

// Two dots by wgmma. Keys are stored as they come, in rows of 128 swizzled bytes, and transposed
// there. The first accumulator, in f16, is operand A of the second dot as it is, in registers.
// CHECK-LABEL: func.func @dots(
// CHECK:      %[[X:.*]] = "lego.load"(%arg0
// CHECK:      %[[Y:.*]] = "lego.load"(%arg1
// CHECK:      %[[YS:.*]] = "lego.convert"(%[[Y]]) {{.*}} -> tensor<64x64xf16, #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">>
// CHECK:      %[[YT:.*]] = "lego.transpose"(%[[YS]]) {{.*}} -> tensor<64x64xf16, #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2))).OrderBy(Col(64, 64))">>
// CHECK:      %[[XS:.*]] = "lego.convert"(%[[X]]) {{.*}} -> tensor<64x64xf16, #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">>
// CHECK:      %[[S:.*]] = "lego.dot"(%[[XS]], %[[YT]], {{.*}} -> tensor<64x64xf32, #lego.layout<"OrderBy(Row(4, 32, 32)).OrderBy(RegP([4, 2, 8, 8, 4, 2], [0, 2, 4, 3, 1, 5])).GroupBy([64, 64])">>
// CHECK:      %[[P:.*]] = arith.truncf %[[S]]
// CHECK:      %[[ZS:.*]] = "lego.convert"{{.*}} -> tensor<64x64xf16, #lego.shared
// CHECK:      %[[O:.*]] = "lego.dot"(%[[P]], %[[ZS]],
func.func @dots(%x: memref<4096xf16> {lego.layout = #Q, lego.alignment = 16 : i64},
                %y: memref<4096xf16> {lego.layout = #Q, lego.alignment = 16 : i64},
                %z: memref<4096xf16> {lego.layout = #Q, lego.alignment = 16 : i64},
                %o: memref<4096xf32> {lego.layout = #Q, lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %a = "lego.load"(%x, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>} : (memref<4096xf16>, index, index) -> tensor<64x64xf16>
    %k = "lego.load"(%y, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>} : (memref<4096xf16>, index, index) -> tensor<64x64xf16>
    %t = "lego.transpose"(%k) {order = array<i64: 1, 0>} : (tensor<64x64xf16>) -> tensor<64x64xf16>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %s = "lego.dot"(%a, %t, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %v = "lego.load"(%z, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>} : (memref<4096xf16>, index, index) -> tensor<64x64xf16>
    %d = "lego.dot"(%p, %v, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "lego.store"(%d, %o, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>} : (tensor<64x64xf32>, memref<4096xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
