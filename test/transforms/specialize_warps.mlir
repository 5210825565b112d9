// The step specialize_warps: a producer warp, consumers, and a ring buffer between them.
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/05-specialize_warps.mlir | FileCheck %s --check-prefixes=CHECK,ALONE
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --param cluster=2 --param pdl=1 \
// RUN:     --param consumer_registers=240 --emit=scheduled --keep %t2 -o %t2.out
// RUN: cat %t2/05-specialize_warps.mlir | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: not %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --target=sm_80 --emit=scheduled \
// RUN:     2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --target=sm_90 --emit=scheduled \
// RUN:     2>&1 | FileCheck %s --check-prefix=PORTABLE
// RUN: not %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --param stages=1 --emit=scheduled \
// RUN:     2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --param cluster=4 --emit=scheduled \
// RUN:     --keep %t3 -o %t3.out
// RUN: cat %t3/05-specialize_warps.mlir | FileCheck %s --check-prefix=SQUARE
// RUN: %legoc %s --schedule=%S/Inputs/ping_pong.mlir --emit=scheduled --keep %t4 -o %t4.out
// RUN: cat %t4/05-specialize_warps.mlir | FileCheck %s --check-prefix=TURNS
// RUN: not %legoc %s --schedule=%S/Inputs/ping_pong.mlir --param persistent_ctas=4 \
// RUN:     --emit=scheduled 2>&1 | FileCheck %s --check-prefix=ONCE
// RUN: not %legoc %s --schedule=%S/Inputs/ping_pong.mlir --param overlap_epilogue=1 \
// RUN:     --emit=scheduled 2>&1 | FileCheck %s --check-prefix=OVERLAP

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
    // ALONE: gpu.barrier
    // PAIRS: nvvm.cluster.arrive {aligned}
    // PAIRS-NEXT: nvvm.cluster.wait {aligned}
    // PAIRS-NEXT: nvvm.griddepcontrol launch_dependents

    // The producer: it announces 2 * 512 bytes and fetches them.
    // CHECK: %[[GROUP:[a-z0-9_]+]] = nvvm.shfl.sync
    // CHECK-DAG: %[[IS_PRODUCER:.*]] = arith.cmpi eq, %[[GROUP]]
    // CHECK: scf.if %[[IS_PRODUCER]] {
    // CHECK-NEXT: nvvm.setmaxregister decrease 24
    // CHECK: nvvm.elect.sync
    // PAIRS: nvvm.griddepcontrol wait
    // CHECK: scf.for %[[K:[a-z0-9_]+]] = %c0 to %c4 step %c1 iter_args(%[[SLOT:[a-z0-9_]+]] = %{{.*}}, %[[PARITY:[a-z0-9_]+]] = %{{.*}})
    // CHECK: %[[OTHER:[a-z0-9_]+]] = arith.xori %[[PARITY]]
    // CHECK: memref.extract_aligned_pointer_as_index %[[EMPTY]]
    // CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[OTHER]]
    // CHECK: memref.extract_aligned_pointer_as_index %[[FULL]]
    // CHECK: %[[BYTES:[a-z0-9_]+]] = arith.constant 1024 : i32
    // CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
    // CHECK-NEXT: %[[X:[a-z0-9_]+]] = "lego.load"(%arg0, %[[M:[0-9#]+]], %[[K]])
    // ALONE-NEXT: "lego.store"(%[[X]], %[[XS]], %[[SLOT]]) {layout = {{.*}}, slice = array<i64: 1, 2>}
    // PAIRS-NEXT: "lego.store"(%[[X]], %[[XS]], %[[SLOT]]) {{.*}}multicast = array<i64: 1, 2, 1>
    // CHECK-NEXT: %[[Y:[a-z0-9_]+]] = "lego.load"(%arg1, %[[N:[0-9#]+]], %[[K]])
    // CHECK-NEXT: "lego.store"(%[[Y]], %[[YS]], %[[SLOT]]) {layout = {{.*}}, slice = array<i64: 1, 2>}
    // CHECK: scf.yield
    // CHECK: lego.bounds = array<i64: 3, 0>

    // The consumers: the first step, then the others, each of which releases the stage before.
    // CHECK: } else {
    // PAIRS-NEXT: nvvm.setmaxregister increase 240
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
    // ALONE-NOT: nvvm.mapa
    // PAIRS: nvvm.mapa
    // CHECK: nvvm.mbarrier.arrive
    // CHECK: lego.bounds = array<i64: 0, 3, 0, 3>
    // CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
    // CHECK: nvvm.mbarrier.arrive
    // CHECK: arith.mulf
    // CHECK-NEXT: "lego.store"(%{{.*}}, %arg2, %[[M]], %[[N]])
    // ALONE-NOT: nvvm.cluster
    // PAIRS: nvvm.cluster.arrive {aligned}
    // PAIRS-NEXT: nvvm.cluster.wait {aligned}
    // CHECK: gpu.terminator
    // PAIRS-NEXT: } {lego.cluster = 2 : i64, lego.pdl}
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

// CTAs of a cluster of 2×2 tiles: each has A in common with one, and B with another. It releases its
// stages to these and itself.
// SQUARE: %[[THREE:[a-z0-9_]+]] = arith.constant 3 : i32
// SQUARE-NEXT: nvvm.mbarrier.init %{{.*}}, %[[THREE]]
// SQUARE: "lego.load"(%arg0,
// SQUARE-NEXT: "lego.store"({{.*}}multicast = array<i64: 2, 2, 1>
// SQUARE-NEXT: "lego.load"(%arg1,
// SQUARE-NEXT: "lego.store"({{.*}}multicast = array<i64: 1, 2, 2>
// SQUARE: %[[RANK:[0-9]+]] = nvvm.read.ptx.sreg.cluster.ctarank
// SQUARE: "lego.inv"({{.*}}"OrderBy(Row(2, 2, 1))"
// SQUARE: %[[A:[0-9]+]] = arith.shli
// SQUARE: "lego.inv"({{.*}}"OrderBy(Row(1, 2, 2))"
// SQUARE: %[[B:[0-9]+]] = arith.shli
// SQUARE: %[[MASK:[0-9]+]] = arith.ori %[[A]], %[[B]]
// SQUARE-NEXT: arith.shrui %[[MASK]],
// SQUARE: } {lego.cluster = 4 : i64}

// Two consumer warpgroups with a tile each: barriers of turns, and loops over every other tile.
// TURNS: arith.constant 384 : index
// TURNS: %[[TURNS:[0-9]+]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(2))">}
// TURNS: "lego.inv"{{.*}}"OrderBy(Row(3, 4, 32))"
// TURNS-COUNT-8: nvvm.mbarrier.init
// TURNS-NOT: nvvm.mbarrier.init
// TURNS: } else {
// TURNS: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[TURN:[a-z0-9_]+]] =
// TURNS: memref.extract_aligned_pointer_as_index %[[TURNS]]
// TURNS: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[TURN]]
// TURNS: %[[NEXT:[0-9]+]] = arith.xori %[[TURN]]
// TURNS: vector.contract
// TURNS: lego.bounds = array<i64: 0, 3, 0, 3>
// TURNS-NEXT: "lego.apply"({{.*}}reverse
// TURNS-NEXT: memref.extract_aligned_pointer_as_index %[[TURNS]]
// TURNS: nvvm.elect.sync
// TURNS-NEXT: scf.if
// TURNS-NEXT: nvvm.mbarrier.arrive
// TURNS: nvvm.wgmma.wait.group.sync.aligned 0
// TURNS: "lego.store"(
// TURNS: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]]
// TURNS: } {lego.ping_pong}

// ONCE: specialize_warps.mlir:{{[0-9:]+}} error: specialize_warps: ping-pong needs CTAs that compute several tiles
// ONCE: hint: persist before, with fewer persistent_ctas than tiles; or --param ping_pong=0
// OVERLAP: error: specialize_warps: with ping-pong an epilogue overlaps with the other warpgroup's main loop already
// OVERLAP: hint: --param overlap_epilogue=0
