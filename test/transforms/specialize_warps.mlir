// The step specialize_warps: a producer warp, consumers, and a ring buffer between them.
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/04-specialize_warps.mlir | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --param pdl=1 \
// RUN:     --param consumer_registers=240 --emit=scheduled --keep %t2 -o %t2.out
// RUN: cat %t2/04-specialize_warps.mlir | FileCheck %s --check-prefixes=CHECK,PDL
// RUN: not %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --target=sm_80 --emit=scheduled \
// RUN:     2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --target=sm_90 --emit=scheduled \
// RUN:     2>&1 | FileCheck %s --check-prefix=PORTABLE
// RUN: not %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --param stages=1 --emit=scheduled \
// RUN:     2>&1 | FileCheck %s --check-prefix=STAGES

// TARGET: specialize_warps.mlir:{{[0-9]+}}:{{[0-9]+}}: error: specialize_warps: {{.*}} need sm_90a, the target is sm_80
// TARGET: hint: --target=sm_90a
// PORTABLE: specialize_warps.mlir:{{[0-9]+}}:{{[0-9]+}}: error: specialize_warps: {{.*}} need sm_90a, the target is sm_90
// PORTABLE: hint: --target=sm_90a
// STAGES: error: specialize_warps: stages is 1, but a ring buffer needs 2

#A = #lego.layout<"OrderBy(Row(32, 64)).TileBy([2, 4], [16, 16])">
#S = #lego.layout<"OrderBy(GenP([16, 16], tma_swizzle(32, 2)))">
#blocks = #lego.layout<"OrderBy(Row(2, 2))">

// CHECK-LABEL: func.func @gemm
func.func @gemm(%a: memref<2048xf16>, %b: memref<2048xf16>, %c: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 128 : index
  // One warpgroup more than those that multiply.
  // CHECK: %[[THREADS:[a-z0-9_]+]] = arith.constant 256 : index
  // CHECK-NEXT: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %[[THREADS]],
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // The stages, and two barriers each.
    // CHECK-NEXT: %[[XS:[a-z0-9_]+]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(3), GenP([16, 16], tma_swizzle(32, 2)))">}
    // CHECK-NEXT: %[[YS:[a-z0-9_]+]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(3), GenP([16, 16], tma_swizzle(32, 2)))">}
    // CHECK-NEXT: %[[FULL:[a-z0-9_]+]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(3))">}
    // CHECK-NEXT: %[[EMPTY:[a-z0-9_]+]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(3))">}
    // CHECK: "lego.inv"{{.*}}"OrderBy(Row(2, 4, 32))"
    // CHECK-COUNT-6: nvvm.mbarrier.init
    // CHECK-NOT: nvvm.mbarrier.init
    // CHECK: nvvm.fence.mbarrier.init
    // CHECK: gpu.barrier
    // PDL: nvvm.griddepcontrol launch_dependents

    // The producer: it announces 2 * 512 bytes and fetches them.
    // CHECK: %[[GROUP:[a-z0-9_]+]] = nvvm.shfl.sync
    // CHECK-DAG: %[[IS_PRODUCER:.*]] = arith.cmpi eq, %[[GROUP]]
    // CHECK: scf.if %[[IS_PRODUCER]] {
    // CHECK-NEXT: nvvm.setmaxregister decrease 24
    // CHECK: nvvm.elect.sync
    // PDL: nvvm.griddepcontrol wait
    // CHECK: scf.for %[[K:[a-z0-9_]+]] = %c0 to %c4 step %c1 iter_args(%[[SLOT:[a-z0-9_]+]] = %{{.*}}, %[[PARITY:[a-z0-9_]+]] = %{{.*}})
    // CHECK: %[[OTHER:[a-z0-9_]+]] = arith.xori %[[PARITY]]
    // CHECK: memref.extract_aligned_pointer_as_index %[[EMPTY]]
    // CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[OTHER]]
    // CHECK: memref.extract_aligned_pointer_as_index %[[FULL]]
    // CHECK: %[[BYTES:[a-z0-9_]+]] = arith.constant 1024 : i32
    // CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
    // CHECK-NEXT: %[[X:[a-z0-9_]+]] = "lego.load"(%arg0, %[[M:[0-9#]+]], %[[K]])
    // CHECK-NEXT: "lego.store"(%[[X]], %[[XS]], %[[SLOT]]) {layout = {{.*}}, slice = array<i64: 1, 2>}
    // CHECK-NEXT: %[[Y:[a-z0-9_]+]] = "lego.load"(%arg1, %[[N:[0-9#]+]], %[[K]])
    // CHECK-NEXT: "lego.store"(%[[Y]], %[[YS]], %[[SLOT]]) {layout = {{.*}}, slice = array<i64: 1, 2>}
    // CHECK: scf.yield
    // CHECK: lego.bounds = array<i64: 3, 0>

    // The consumers: the first step, then the others, each of which releases the stage before.
    // CHECK: } else {
    // PDL-NEXT: nvvm.setmaxregister increase 240
    // CHECK: memref.extract_aligned_pointer_as_index %[[FULL]]
    // CHECK: nvvm.mbarrier.try_wait.parity
    // CHECK-NEXT: "lego.load"(%[[XS]], %[[FIRST:[a-z0-9_]+]])
    // CHECK-NEXT: "lego.load"(%[[YS]], %[[FIRST]])
    // CHECK-NEXT: %[[SUM:[a-z0-9_]+]] = vector.contract {{.*}}, %[[ZERO:[a-z0-9_]+]] {lego.warps
    // CHECK: scf.for {{.*}} to %c4 step %c1 iter_args(%[[PART:[a-z0-9_]+]] = %[[SUM]], %[[SLOT:[a-z0-9_]+]] = %{{.*}}, %[[PARITY:[a-z0-9_]+]] = %{{.*}}, %[[BEFORE:[a-z0-9_]+]] = %[[FIRST]])
    // CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[PARITY]]
    // CHECK-NEXT: "lego.load"(%[[XS]], %[[SLOT]])
    // CHECK-NEXT: "lego.load"(%[[YS]], %[[SLOT]])
    // CHECK-NEXT: vector.contract {{.*}}, %[[PART]] {lego.warps
    // CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
    // CHECK-NEXT: scf.if
    // CHECK-NEXT: memref.extract_aligned_pointer_as_index %[[EMPTY]]
    // CHECK: arith.index_cast %[[BEFORE]] : index to i32
    // CHECK-NOT: nvvm.mapa
    // CHECK: nvvm.mbarrier.arrive
    // CHECK: lego.bounds = array<i64: 0, 3, 0, 3>
    // CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
    // CHECK: nvvm.mbarrier.arrive
    // CHECK: arith.mulf
    // CHECK-NEXT: "lego.store"(%{{.*}}, %arg2, %[[M]], %[[N]])
    // CHECK-NOT: nvvm.cluster
    // CHECK: gpu.terminator
    // PDL-NEXT: } {lego.pdl}
    %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> vector<16x16xf32> {
      %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<2048xf16>, index, index) -> vector<16x16xf16>
      %y = "lego.load"(%b, %n, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<2048xf16>, index, index) -> vector<16x16xf16>
      %next = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
          affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"],
          lego.warps = #lego.layout<"OrderBy(Row(4, 1))">}
          %x, %y, %acc : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      scf.yield %next : vector<16x16xf32>
    }
    %result = arith.mulf %sum, %sum : vector<16x16xf32>
    "lego.store"(%result, %c, %m, %n)
        {layout = #lego.layout<"OrderBy(Row(32, 32)).TileBy([2, 2], [16, 16])">,
         slice = array<i64: 2, 3>} : (vector<16x16xf32>, memref<1024xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
