// The step prefetch_fragments: the loop begins with mmas, and waits before the last group.
// RUN: %legoc %s --schedule=cp_async --param stages=3 --keep %t --emit=scheduled -o %t.out
// RUN: cat %t/09-prefetch_fragments.mlir | FileCheck %s
// RUN: %legoc %s --schedule=cp_async --param stages=3 --run --device=sim --sim-order=late | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %s --schedule=cp_async --param stages=3 --run --device=sim --sim-order=early | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e 's/16x160xf16/16x32xf16/g; s/160x16xf16/32x16xf16/g; s/160/32/; s/arith.constant 5/arith.constant 1/' %s > %t.one.mlir
// RUN: %legoc %t.one.mlir --schedule=cp_async --run --device=sim | FileCheck %s --check-prefix=RIGHT
// The number of iterations need not be known.
// RUN: sed -e 's/%%steps = arith.constant 5/%%n = arith.constant 5/; s/^ *%%gemm = scf.for/%%steps = arith.muli %%n, %%gy : index\n&/' %s > %t.any.mlir
// RUN: %legoc %t.any.mlir --schedule=cp_async --keep %t --emit=scheduled -o %t.out
// RUN: cat %t/09-prefetch_fragments.mlir | FileCheck %s --check-prefix=ANY
// RUN: %legoc %t.any.mlir --schedule=cp_async --run --device=sim | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e '/lego.dot/,+1d; s/scf.yield %%next/scf.yield %%acc/' %s > %t.without.mlir
// RUN: not %legoc %t.without.mlir --schedule=%S/Inputs/prefetch_fragments.mlir --emit=scheduled 2>&1 | FileCheck %s --check-prefix=WITHOUT
// A loop that does not begin with a wait stays as it is.
// RUN: %legoc %s --schedule=%S/Inputs/prefetch_fragments.mlir --emit=scheduled | FileCheck %s --check-prefix=WAITLESS

// RUN: %legoc %S/Inputs/matmul.mlir --schedule=cp_async --param stages=3 --target=sm_80 \
// RUN:     --emit=index | FileCheck %s --check-prefix=STAGE

// The stage of a ring is carried, too: the next iteration's, or again that of the last one. The copies'
// is near it, and nothing divides.
// STAGE:      scf.for %[[K:[a-z0-9]*]] =
// STAGE-NOT:  arith.remui
// STAGE-NOT:  arith.divui
// STAGE:      %[[WRAPS:.*]] = arith.cmpi eq, %[[S:.*]], %c2
// STAGE:      %[[NEXT:.*]] = arith.select %[[WRAPS]], %c0, %
// STAGE-NEXT: %[[OTHER:.*]] = arith.cmpi ne, %{{.*}}, %[[K]]
// STAGE-NEXT: %[[EARLY:.*]] = arith.select %[[OTHER]], %[[NEXT]], %[[S]]
// STAGE-NOT:  arith.remui
// STAGE-NOT:  arith.divui
// STAGE:      scf.if
// STAGE-NEXT:   arith.cmpi ugt, %[[S]], %c0
// STAGE:      nvgpu.device_async_copy
// STAGE:      nvvm.mma.sync
// STAGE:      nvvm.cp.async.wait.group 1
// STAGE-NEXT: gpu.barrier
// STAGE:      %[[EARLY]]
// STAGE:      nvvm.ldmatrix
// STAGE:      nvvm.mma.sync
// STAGE-NOT:  arith.remui
// STAGE:      scf.yield

// ANY: scf.for %[[K:[a-z0-9]*]] =
// ANY: %[[AFTER:.*]] = arith.addi %[[K]]
// ANY-NEXT: %[[THERE:.*]] = arith.cmpi slt, %[[AFTER]], %[[N:.*]]
// ANY-NEXT: arith.select %[[THERE]], %[[AFTER]], %[[K]]

// WITHOUT: error: prefetch_fragments: looked for mma.sync in
// WITHOUT: hint: the loops that it takes multiply tiles by lego.dot

// WAITLESS: scf.for
// WAITLESS-NOT: nvvm.cp.async
// WAITLESS: nvvm.mma.sync
// WAITLESS: scf.yield

// RIGHT: check{{ +}}agrees with NumPy's matmul

#A = #lego.layout<"OrderBy(Row(16, 160))">
#B = #lego.layout<"OrderBy(Row(160, 16))">
#C = #lego.layout<"OrderBy(Row(16, 16))">

module attributes {lego.reference = "matmul"} {
  // CHECK-LABEL: func.func @gemm
  func.func @gemm(%a: memref<16x160xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                  %b: memref<160x16xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %c: memref<16x16xf32> {lego.layout = #C}) {
    %c1 = arith.constant 1 : index
    %threads = arith.constant 32 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
      %c0 = arith.constant 0 : index
      %depth = arith.constant 32 : index
      %steps = arith.constant 5 : index
      // CHECK: nvvm.cp.async.wait.group 1
      // CHECK-NEXT: gpu.barrier
      // CHECK-COUNT-2: lego.load_matrices
      // CHECK-NOT: lego.load_matrices
      // CHECK: scf.for %[[K:[a-z0-9]*]] =
      // CHECK-NOT: nvvm.cp.async.wait.group
      // CHECK-DAG: %[[AFTER:.*]] = arith.addi %[[K]], %
      // CHECK-DAG: %[[NEXT:.*]] = arith.minsi %[[AFTER]], %c4
      // CHECK-DAG: arith.cmpi ne, %[[NEXT]], %[[K]]
      // CHECK-COUNT-2: lego.load_matrices
      // CHECK-NOT: lego.load_matrices
      // CHECK: scf.if
      // CHECK: lego.copy_parts
      // CHECK: nvvm.cp.async.commit.group
      // CHECK-COUNT-2: nvvm.mma.sync
      // CHECK-NOT: nvvm.mma.sync
      // CHECK: nvvm.cp.async.wait.group 1
      // CHECK-NEXT: gpu.barrier
      // CHECK-COUNT-2: lego.load_matrices
      // CHECK-NOT: lego.load_matrices
      // CHECK-COUNT-2: nvvm.mma.sync
      // CHECK-NOT: nvvm.mma.sync
      // CHECK: scf.yield
      %zero = arith.constant dense<0.0> : tensor<16x16xf32>
      %gemm = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero) -> tensor<16x16xf32> {
        %k = arith.muli %i, %depth : index
        %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 0, 1>}
            : (memref<16x160xf16>, index, index) -> tensor<16x32xf16>
        %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 0, 1>}
            : (memref<160x16xf16>, index, index) -> tensor<32x16xf16>
        %next = "lego.dot"(%x, %y, %acc) {instruction = "mma.sync"}
            : (tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
        scf.yield %next : tensor<16x16xf32>
      }
      "lego.store"(%gemm, %c, %c0, %c0) {layout = #C, slice = array<i64: 0, 1>}
          : (tensor<16x16xf32>, memref<16x16xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
