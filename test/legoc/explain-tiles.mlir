// --explain shows the layouts of tiles, and what conversions and reductions do.
// RUN: %legoc %s --explain | FileCheck %s

// CHECK:      tiles      4 warps
// CHECK-NEXT:   layout 0   64×64
// CHECK-NEXT:     warp      4 along dim 0 by 2
// CHECK-NEXT:     lane      2 along dim 0, 16 along dim 1 by 4
// CHECK-NEXT:     register  8 along dim 0 by 8, 4 along dim 1
// CHECK:        line {{[0-9]+}}  lego.load {{ *}} 64×64 f32  layout 0
// CHECK-NEXT:   line {{[0-9]+}}  lego.reduce {{ *}} 64×1 f32 {{ *}} layout 1 {{ *}} 24 operations in registers → 32 shuffles
// CHECK:        line {{[0-9]+}}  lego.convert {{ *}} 64×64 f32  layout 2 → 0  shared: {{.*}} 0 for bank conflicts, 16384 bytes

#A = #lego.layout<"OrderBy(Row(64, 64))">
func.func @main(%a: memref<4096xf32> {lego.layout = #A, lego.alignment = 16 : i64},
                %o: memref<4096xf32> {lego.layout = #A, lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %x = "lego.load"(%a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>} : (memref<4096xf32>, index, index) -> tensor<64x64xf32>
    %s = "lego.reduce"(%x) {kind = "add", dim = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x1xf32>
    %b = "lego.broadcast"(%s) : (tensor<64x1xf32>) -> tensor<64x64xf32>
    %y = arith.addf %x, %b : tensor<64x64xf32>
    %t = "lego.transpose"(%y) {order = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    "lego.store"(%t, %o, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>} : (tensor<64x64xf32>, memref<4096xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
