// The step split_k: two CTAs of a cluster share an output tile, each for half of K.
// RUN: %legoc %s --schedule=%S/Inputs/split_k.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/03-split_k.mlir | FileCheck %s
// RUN: cat %t/04-specialize_warps.mlir | FileCheck %s --check-prefix=ROLES
// RUN: cat %t/07-contract_to_wgmma.mlir | FileCheck %s --check-prefix=SEND
// RUN: %legoc %s --schedule=%S/Inputs/split_k.mlir --param split_k=1 --emit=ptx | FileCheck %s --check-prefix=ONE
// RUN: %legoc %s --schedule=%S/Inputs/split_k.mlir --param over_ring=1 --emit=scheduled --keep %t1 -o %t1.out
// RUN: cat %t1/07-contract_to_wgmma.mlir | FileCheck %s --check-prefix=OVER
// RUN: not %legoc %s --schedule=%S/Inputs/split_k.mlir --param split_k=4 --emit=ptx 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: not %legoc %s --schedule=%S/Inputs/split_k.mlir --target=sm_80 --emit=ptx 2>&1 | FileCheck %s --check-prefix=AMPERE

#A = #lego.layout<"OrderBy(Row(64, 384)).TileBy([1, 6], [64, 64])">
#B = #lego.layout<"OrderBy(Row(384, 192)).TileBy([6, 3], [64, 64])">
#C = #lego.layout<"OrderBy(Row(64, 192)).TileBy([1, 3], [64, 64])">
#S = #lego.layout<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#chunk = #lego.layout<"OrderBy(GenP([64, 32], tma_swizzle(64, 2)))">
#bias = #lego.layout<"OrderBy(Row(192)).TileBy([3], [64])">
#warps = #lego.layout<"OrderBy(Row(4, 1))">

func.func @gemm(%a: memref<24576xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                   %b: memref<73728xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                   %d: memref<192xf32> {lego.layout = #bias},
                   %c: memref<12288xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %threads = arith.constant 128 : index
  // Twice as many CTAs, each with its id of the tile and of the slice.
  // CHECK: gpu.launch blocks(%[[BLOCK:arg[0-9]+]], {{.*}}) in (%{{.*}} = %c6{{[_0-9]*}},
  // CHECK: %[[ID:[0-9]+]]:2 = "lego.inv"(%[[BLOCK]]) {layout = #lego.layout<"OrderBy(Row(3, 2))">}
  gpu.launch blocks(%n, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    // CHECK: %[[SUM:[0-9]+]] = scf.for %[[STEP:arg[0-9]+]] = %c0 to %c3
    // CHECK: %[[K:[0-9]+]] = "lego.apply"(%[[ID]]#1, %[[STEP]]) {layout = #lego.layout<"OrderBy(Row(2, 3))">}
    // CHECK: "lego.load"(%arg0, %c0, %[[K]])
    // CHECK: "lego.load"(%arg1, %[[K]], %[[ID]]#0)
    %sum = scf.for %k = %c0 to %c6 step %c1 iter_args(%acc = %zero) -> vector<64x64xf32> {
      %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<24576xf16>, index, index) -> vector<64x64xf16>
      %y = "lego.load"(%b, %k, %n) {layout = #B, slice = array<i64: 2, 3>, shared = #S}
          : (memref<73728xf16>, index, index) -> vector<64x64xf16>
      %next = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
                                                affine_map<(i, j, k) -> (k, j)>,
                                                affine_map<(i, j, k) -> (i, j)>],
                               iterator_types = ["parallel", "parallel", "reduction"],
                               lego.warps = #warps}
          %x, %y, %acc : vector<64x64xf16>, vector<64x64xf16> into vector<64x64xf32>
      scf.yield %next : vector<64x64xf32>
    }
    // From here on half of the columns, and of what they meet; no more than that is stored.
    // CHECK: %[[OWN:[0-9]+]] = "lego.reduce_scatter_columns"(%[[SUM]], %[[ID]]#1) {layout = #lego.layout<"OrderBy(Row(2, 32))">} : (vector<64x64xf32>, index) -> vector<64x32xf32>
    // CHECK-NOT: 64x64
    // CHECK: "lego.load"(%arg2, %[[ID]]#0, %[[ID]]#1) {layout = #lego.layout<"OrderBy(Row(192)).TileBy([3], [2], [32])">, slice = array<i64: 2>}
    // CHECK: vector.broadcast %{{.*}} : vector<32xf32> to vector<64x32xf32>
    // CHECK: arith.addf %[[OWN]], %{{.*}} fastmath<contract> : vector<64x32xf32>
    // CHECK: arith.truncf %{{.*}} : vector<64x32xf32> to vector<64x32xf16>
    // CHECK: "lego.store"(%{{.*}}, %arg3, %c0, %[[ID]]#0, %{{.*}}, %[[ID]]#1) {layout = #lego.layout<"OrderBy(Row(64, 192)).TileBy([1, 3], [1, 2], [64, 32])">
    // CHECK: lego.cluster = 2
    %row = "lego.load"(%d, %n) {layout = #bias, slice = array<i64: 1>}
        : (memref<192xf32>, index) -> vector<64xf32>
    %rows = vector.broadcast %row : vector<64xf32> to vector<64x64xf32>
    %biased = arith.addf %sum, %rows fastmath<contract> : vector<64x64xf32>
    %result = arith.truncf %biased : vector<64x64xf32> to vector<64x64xf16>
    "lego.store"(%result, %c, %c0, %n) {layout = #C, slice = array<i64: 2, 3>, shared = #chunk}
        : (vector<64x64xf16>, memref<12288xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

// All begin; whoever fetches comes to the cluster's barriers with those who add up.
// ROLES: nvvm.cluster.arrive.relaxed {aligned}
// ROLES: nvvm.mbarrier.arrive.expect_tx
// ROLES: nvvm.cluster.wait {aligned}
// ROLES-NEXT: nvvm.cluster.arrive {aligned}
// ROLES-NEXT: nvvm.cluster.wait {aligned}
// ROLES: } else {
// ROLES: "lego.reduce_scatter_columns"

// Each block to the other: four times four sums of a thread, 2 KiB apart.
// SEND: lego.alloc{{.*}}"OrderBy(Row(1, 4, 128, 4))"
// SEND: nvvm.wgmma.wait.group.sync.aligned 0
// SEND: nvvm.cluster.wait {aligned}
// SEND-NEXT: scf.if
// SEND: %[[OTHER:[0-9]+]] = nvvm.mapa
// SEND: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<7>
// SEND: llvm.getelementptr %[[OTHER]][6144]
// SEND: scf.if
// SEND: nvvm.mapa
// SEND: llvm.getelementptr %{{[0-9]+}}[6144]
// SEND: llvm.store
// SEND-NEXT: }
// SEND-NEXT: nvvm.cluster.arrive {aligned}
// SEND-NEXT: nvvm.cluster.wait {aligned}
// SEND: arith.select
// SEND: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// SEND: arith.addf

// Where tiles were, all wait until these are done with.
// OVER-NOT: "OrderBy(Row(1, 4, 128, 4))"
// OVER-NOT: nvvm.cluster.arrive.relaxed
// OVER: nvvm.mbarrier.arrive.expect_tx
// OVER-COUNT-2: nvvm.cluster.arrive {aligned}
// OVER: nvvm.wgmma.wait.group.sync.aligned 0
// OVER: nvvm.cluster.arrive {aligned}
// OVER-NEXT: nvvm.cluster.wait {aligned}
// OVER: llvm.store

// ONE-NOT: cluster.arrive
// ONE: wgmma.mma_async

// UNEVEN: split_k.mlir:{{[0-9:]+}} error: split_k: 6 iterations of the K loop leave none for the last of 4 slices of 2
// UNEVEN: %sum = scf.for
// UNEVEN: hint: a smaller split_k

// AMPERE: Inputs/split_k.mlir:{{[0-9:]+}} error: split_k: the target sm_80 has no clusters
