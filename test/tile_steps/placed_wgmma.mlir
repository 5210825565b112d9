// Tiles in shared memory whose layouts the program gives are what TMA writes and wgmma reads, or the error
// names the operand and says why.
// RUN: %legoc %s --schedule=persistent --param ctas=2 --emit=ptx | FileCheck %s
// RUN: %legoc %s --schedule=persistent --param ctas=2 --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e '/^#shared_A /s/tma_swizzle(128, 2)/swizzle(8, 2, 4)/' %s > %t.a.mlir
// RUN: not %legoc %t.a.mlir --schedule=persistent --emit=ptx 2>&1 | FileCheck %s --check-prefix=READ
// RUN: sed -e '/^#shared_B /s/GenP.*)"/Row(64, 64))"/' %s > %t.b.mlir
// RUN: not %legoc %t.b.mlir --schedule=persistent --emit=ptx 2>&1 | FileCheck %s --check-prefixes=READ,ROWS

// A tensor that has no strides is no tensor of TMA: threads copy it, to the same places.
// RUN: sed -e '/^#A /s/Row(128, 128)/GenP([128, 128], hilbert)/' %s > %t.hilbert.mlir
// RUN: %legoc %t.hilbert.mlir --schedule=persistent --param ctas=2 --run --device=sim | FileCheck %s --check-prefix=AGREES

// CHECK:      wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// CHECK:      cp.async.bulk.tensor.2d.shared::cluster.global
// RIGHT:      0 excess wavefronts
// RIGHT:      check{{ +}}agrees with NumPy's matmul
// AGREES:     check{{ +}}agrees with NumPy's matmul
// READ:       error: operand {{[AB]}} of this dot: wgmma cannot read 'OrderBy({{.*}} in shared memory
// ROWS-SAME:  its 16-byte chunks do not lie as any of the swizzling modes has them
// READ:       hint: rows of 128 bytes, one below the other, in tma_swizzle(128, 2)

#A = #lego.layout<"OrderBy(Row(128, 128)).TileBy([2, 2], [64, 64])">
#B = #lego.layout<"OrderBy(Row(128, 128)).TileBy([2, 2], [64, 64])">
#C = #lego.layout<"OrderBy(Row(128, 128)).TileBy([2, 2], [64, 64])">
#blocks = #lego.layout<"OrderBy(Row(2, 2))">
#shared_A = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#shared_B = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
module attributes {lego.reference = "matmul"} {
  func.func @matmul(%a: memref<16384xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                    %b: memref<16384xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                    %c: memref<16384xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %sum = scf.for %k = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> {
        %x = "lego.load"(%a, %m, %k, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>}
            : (memref<16384xf16>, index, index, index, index) -> tensor<64x64xf16>
        %y = "lego.load"(%b, %k, %n, %c0, %c0) {layout = #B, slice = array<i64: 2, 3>}
            : (memref<16384xf16>, index, index, index, index) -> tensor<64x64xf16>
        %left = "lego.convert"(%x) : (tensor<64x64xf16>) -> tensor<64x64xf16, #shared_A>
        %right = "lego.convert"(%y) : (tensor<64x64xf16>) -> tensor<64x64xf16, #shared_B>
        %next = "lego.dot"(%left, %right, %acc)
            : (tensor<64x64xf16, #shared_A>, tensor<64x64xf16, #shared_B>, tensor<64x64xf32>)
            -> tensor<64x64xf32>
        scf.yield %next : tensor<64x64xf32>
      }
      %result = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
      "lego.store"(%result, %c, %m, %n, %c0, %c0) {layout = #C, slice = array<i64: 2, 3>}
          : (tensor<64x64xf16>, memref<16384xf16>, index, index, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
