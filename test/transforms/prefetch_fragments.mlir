// The step prefetch_fragments: the loop begins with mmas, and waits before the last group.
// RUN: %legoc %s --schedule=%S/Inputs/prefetch_fragments.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/09-prefetch_fragments.mlir | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/prefetch_fragments.mlir --run --device=sim --sim-order=late
// RUN: %legoc %s --schedule=%S/Inputs/prefetch_fragments.mlir --run --device=sim --sim-order=early
// RUN: sed -e 's/16x160xf16/16x32xf16/g; s/160x16xf16/32x16xf16/g' %s > %t.one.mlir
// RUN: %legoc %t.one.mlir --set K=32 --schedule=%S/Inputs/prefetch_fragments.mlir --run --device=sim
// The number of iterations need not be known.
// RUN: sed -e '/^ *%%steps =/a %%n = arith.muli %%steps, %%c1 : index' \
// RUN:     -e 's/to %%steps step/to %%n step/' %s > %t.any.mlir
// RUN: %legoc %t.any.mlir --schedule=%S/Inputs/prefetch_fragments.mlir --emit=scheduled -o %t.out --keep %t
// RUN: cat %t/09-prefetch_fragments.mlir | FileCheck %s --check-prefix=ANY
// RUN: %legoc %t.any.mlir --schedule=%S/Inputs/prefetch_fragments.mlir --run --device=sim
// RUN: sed -e '/contract_to_mma/d' %S/Inputs/prefetch_fragments.mlir > %t.without.mlir
// RUN: not %legoc %s --schedule=%t.without.mlir --emit=scheduled 2>&1 \
// RUN:     | FileCheck %s --check-prefix=WITHOUT
// RUN: sed -e '/pipeline_copies/d' %S/Inputs/prefetch_fragments.mlir > %t.waitless.mlir
// RUN: %legoc %s --schedule=%t.waitless.mlir --emit=scheduled | FileCheck %s --check-prefix=WAITLESS

// RUN: %legoc %S/../tile_steps/Inputs/matmul.mlir --schedule=cp_async --param stages=3 --target=sm_80 \
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
// WITHOUT: hint: run contract_to_mma first
// A loop that does not begin with a wait stays as it is.
// WAITLESS: scf.for
// WAITLESS: nvgpu.device_async_copy
// WAITLESS: nvvm.cp.async.wait.group 0
// WAITLESS: nvvm.ldmatrix
// WAITLESS: scf.yield

#A = #lego.layout<"OrderBy(Row(16, K)).TileBy([1, K/32], [16, 32])">
#B = #lego.layout<"OrderBy(Row(K, 16)).TileBy([K/32, 1], [32, 16])">
#C = #lego.layout<"OrderBy(Row(16, 16)).TileBy([1, 1], [16, 16])">
#SA = #lego.layout<"OrderBy(GenP([16, 32], swizzle(8, 2, 4)))">
#SB = #lego.layout<"OrderBy(GenP([32, 16], swizzle(8, 4, 2)))">
#warps = #lego.layout<"OrderBy(Row(1, 1))">

#row_column = affine_map<(i, j, k) -> (i, k)>
#column = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>

module attributes {lego.sizes = {K = 160}, lego.reference = "matmul"} {
  // CHECK-LABEL: func.func @gemm
  func.func @gemm(%a: memref<16x160xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                     %b: memref<160x16xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                     %c: memref<16x16xf32> {lego.layout = #C}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant 32 : index
    %steps = "lego.dim"() {layout = #A, dim = 1} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
      %zero = arith.constant dense<0.0> : vector<16x16xf32>
      // CHECK-DAG: %[[LAST:.*]] = arith.constant 4 : index
      // CHECK: nvvm.cp.async.wait.group 1
      // CHECK-NEXT: gpu.barrier
      // CHECK-COUNT-2: nvvm.ldmatrix
      // CHECK-NOT: nvvm.ldmatrix
      // CHECK: scf.for %[[K:[a-z0-9]*]] =
      // CHECK-NOT: nvvm.cp.async.wait.group
      // CHECK-DAG: %[[AFTER:.*]] = arith.addi %[[K]], %c1
      // CHECK-DAG: %[[NEXT:.*]] = arith.minsi %[[AFTER]], %[[LAST]]
      // CHECK: scf.if
      // CHECK: nvgpu.device_async_copy
      // CHECK: nvvm.cp.async.commit.group
      // CHECK-COUNT-2: nvvm.ldmatrix
      // CHECK-NOT: nvvm.ldmatrix
      // CHECK-COUNT-2: nvvm.mma.sync
      // CHECK-NOT: nvvm.mma.sync
      // CHECK: nvvm.cp.async.wait.group 1
      // CHECK-NEXT: gpu.barrier
      // CHECK: arith.remui %[[NEXT]]
      // CHECK-COUNT-2: nvvm.ldmatrix
      // CHECK-NOT: nvvm.ldmatrix
      // CHECK-COUNT-2: nvvm.mma.sync
      // CHECK-NOT: nvvm.mma.sync
      // CHECK: scf.yield
      %gemm = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> vector<16x16xf32> {
        %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #SA}
            : (memref<16x160xf16>, index, index) -> vector<16x32xf16>
        %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 2, 3>, shared = #SB}
            : (memref<160x16xf16>, index, index) -> vector<32x16xf16>
        %next = vector.contract {indexing_maps = [#row_column, #column, #sum],
                                 iterator_types = ["parallel", "parallel", "reduction"],
                                 lego.warps = #warps}
            %x, %y, %acc : vector<16x32xf16>, vector<32x16xf16> into vector<16x16xf32>
        scf.yield %next : vector<16x16xf32>
      }
      "lego.store"(%gemm, %c, %c0, %c0) {layout = #C, slice = array<i64: 2, 3>}
          : (vector<16x16xf32>, memref<16x16xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
