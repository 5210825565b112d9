// The step spread_copies: four copies of A and four of B, before three groups of mmas.
// RUN: %legoc %s --schedule=%S/Inputs/spread_copies.mlir --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/spread_copies.mlir --run --device=sim --sim-order=late
// RUN: %legoc %s --schedule=%S/Inputs/spread_copies.mlir --run --device=sim --sim-order=early
// Without the loads ahead, mmas begin behind the barrier all the same.
// RUN: sed -e '/prefetch_fragments/d' %S/Inputs/spread_copies.mlir > %t.late.mlir
// RUN: %legoc %s --schedule=%t.late.mlir --emit=scheduled | FileCheck %s --check-prefix=LATE
// RUN: %legoc %s --schedule=%t.late.mlir --run --device=sim --sim-order=random:1
// Partial tiles: what is copied of a row is its own part's.
// RUN: sed -e 's/16x320xf16/16x312xf16/g; s/320x16xf16/312x16xf16/g' \
// RUN:     -e 's/Row(16, K)/Row(16, 312)/; s/Row(K, 16)/Row(312, 16)/' \
// RUN:     -e 's,K/64,5,g' %s > %t.partial.mlir
// RUN: %legoc %t.partial.mlir --schedule=%S/Inputs/spread_copies.mlir --run --device=sim
// With two iterations all is copied before the loop.
// RUN: sed -e 's/16x320xf16/16x128xf16/g; s/320x16xf16/128x16xf16/g' %s > %t.two.mlir
// RUN: %legoc %t.two.mlir --set K=128 --schedule=%S/Inputs/spread_copies.mlir --emit=scheduled \
// RUN:     | FileCheck %s --check-prefix=TWO
// RUN: sed -e '/_main/,$ s/scf.for/scf.if/' %S/Inputs/spread_copies.mlir > %t.no-loop.mlir
// RUN: not %legoc %s --schedule=%t.no-loop.mlir --emit=scheduled 2>&1 \
// RUN:     | FileCheck %s --check-prefix=NO-LOOP

// NO-LOOP: error: spread_copies: expected a scf.for, found 'scf.if'

#A = #lego.layout<"OrderBy(Row(16, K)).TileBy([1, K/64], [16, 64])">
#B = #lego.layout<"OrderBy(Row(K, 16)).TileBy([K/64, 1], [64, 16])">
#C = #lego.layout<"OrderBy(Row(16, 16)).TileBy([1, 1], [16, 16])">
#SA = #lego.layout<"OrderBy(GenP([16, 64], swizzle(8, 1, 8)))">
#SB = #lego.layout<"OrderBy(GenP([64, 16], swizzle(8, 4, 2)))">
#warps = #lego.layout<"OrderBy(Row(1, 1))">

#row_column = affine_map<(i, j, k) -> (i, k)>
#column = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: func.func @gemm
// CHECK: scf.for %[[K:[a-z0-9]*]] =
// CHECK-NOT: scf.if
// CHECK-DAG: %[[THERE:.*]] = arith.cmpi slt
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// CHECK: scf.if %[[THERE]] {
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

module attributes {lego.sizes = {K = 320}, lego.reference = "matmul"} {
  func.func @gemm(%a: memref<16x320xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                     %b: memref<320x16xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                     %c: memref<16x16xf32> {lego.layout = #C}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant 32 : index
    %steps = "lego.dim"() {layout = #A, dim = 1} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
      %zero = arith.constant dense<0.0> : vector<16x16xf32>
      %gemm = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> vector<16x16xf32> {
        %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #SA}
            : (memref<16x320xf16>, index, index) -> vector<16x64xf16>
        %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 2, 3>, shared = #SB}
            : (memref<320x16xf16>, index, index) -> vector<64x16xf16>
        %next = vector.contract {indexing_maps = [#row_column, #column, #sum],
                                 iterator_types = ["parallel", "parallel", "reduction"],
                                 lego.warps = #warps}
            %x, %y, %acc : vector<16x64xf16>, vector<64x16xf16> into vector<16x16xf32>
        scf.yield %next : vector<16x16xf32>
      }
      "lego.store"(%gemm, %c, %c0, %c0) {layout = #C, slice = array<i64: 2, 3>}
          : (vector<16x16xf32>, memref<16x16xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
