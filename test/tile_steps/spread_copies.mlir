// The step spread_copies: four copies of A and four of B, before three groups of mmas.
// RUN: %legoc %s --schedule=cp_async --param stages=3 --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=cp_async --param stages=3 --run --device=sim --sim-order=late | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %s --schedule=cp_async --param stages=3 --run --device=sim --sim-order=early | FileCheck %s --check-prefix=RIGHT
// Without the loads ahead, mmas begin behind the barrier all the same.
// RUN: sed -e '/transform_lego.prefetch_fragments/d' %transforms/cp_async.mlir > %t.late.mlir
// RUN: %legoc %s --schedule=%t.late.mlir --param stages=3 --emit=scheduled | FileCheck %s --check-prefix=LATE
// RUN: %legoc %s --schedule=%t.late.mlir --param stages=3 --run --device=sim --sim-order=random:1 | FileCheck %s --check-prefix=RIGHT
// Partial tiles: what is copied of a row is its own part's.
// RUN: sed -e 's/16x320xf16/16x312xf16/g; s/320x16xf16/312x16xf16/g; s/320/312/' %s > %t.partial.mlir
// RUN: %legoc %t.partial.mlir --schedule=cp_async --param stages=3 --run --device=sim | FileCheck %s --check-prefix=RIGHT
// With two iterations all is copied before the loop.
// RUN: sed -e 's/16x320xf16/16x128xf16/g; s/320x16xf16/128x16xf16/g; s/320/128/; s/arith.constant 5/arith.constant 2/' %s > %t.two.mlir
// RUN: %legoc %t.two.mlir --schedule=cp_async --param stages=3 --emit=scheduled | FileCheck %s --check-prefix=TWO
// RUN: sed -e '/_main/,$ s/scf.for/scf.if/' %transforms/cp_async.mlir > %t.no-loop.mlir
// RUN: not %legoc %s --schedule=%t.no-loop.mlir --emit=scheduled 2>&1 | FileCheck %s --check-prefix=NO-LOOP

// NO-LOOP: error: spread_copies: expected a scf.for, found 'scf.if'

// RIGHT: check{{ +}}agrees with NumPy's matmul

// CHECK-LABEL: func.func @gemm
// CHECK: scf.for %[[K:[a-z0-9]*]] =
// CHECK-NOT: scf.if
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// CHECK: scf.if %[[THERE:[0-9]+]] {
// CHECK-COUNT-2: nvgpu.device_async_copy
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: }
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// CHECK: scf.if %[[THERE]] {
// CHECK-COUNT-3: nvgpu.device_async_copy
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: }
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// CHECK: scf.if %[[THERE]] {
// CHECK-COUNT-3: nvgpu.device_async_copy
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: }
// CHECK: nvvm.cp.async.commit.group
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: scf.if
// CHECK: scf.yield

// LATE: scf.for
// LATE: nvvm.cp.async.wait.group 1
// LATE-NEXT: gpu.barrier
// LATE-NOT: nvgpu.device_async_copy
// LATE: nvvm.ldmatrix
// LATE-COUNT-8: nvgpu.device_async_copy
// LATE: nvvm.cp.async.commit.group
// LATE: nvvm.mma.sync
// LATE-NOT: nvgpu.device_async_copy
// LATE: scf.yield

// TWO: scf.for
// TWO-NOT: scf.if
// TWO-NOT: nvgpu.device_async_copy
// TWO: scf.yield

#A = #lego.layout<"OrderBy(Row(16, 320))">
#B = #lego.layout<"OrderBy(Row(320, 16))">
#C = #lego.layout<"OrderBy(Row(16, 16))">

module attributes {lego.reference = "matmul"} {
  func.func @gemm(%a: memref<16x320xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                  %b: memref<320x16xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %c: memref<16x16xf32> {lego.layout = #C}) {
    %c1 = arith.constant 1 : index
    %threads = arith.constant 32 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
      %c0 = arith.constant 0 : index
      %depth = arith.constant 64 : index
      %steps = arith.constant 5 : index
      %zero = arith.constant dense<0.0> : tensor<16x16xf32>
      %gemm = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero) -> tensor<16x16xf32> {
        %k = arith.muli %i, %depth : index
        %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 0, 1>}
            : (memref<16x320xf16>, index, index) -> tensor<16x64xf16>
        %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 0, 1>}
            : (memref<320x16xf16>, index, index) -> tensor<64x16xf16>
        %next = "lego.dot"(%x, %y, %acc) {instruction = "mma.sync"}
            : (tensor<16x64xf16>, tensor<64x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
        scf.yield %next : tensor<16x16xf32>
      }
      "lego.store"(%gemm, %c, %c0, %c0) {layout = #C, slice = array<i64: 0, 1>}
          : (tensor<16x16xf32>, memref<16x16xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
