// A row that two CTAs of a cluster hold together: each reduces its half, and sends it to both.
// RUN: %legoc %s | FileCheck %s

#X = #lego.layout<"OrderBy(Row(4, 1024))">
#R = #lego.layout<"OrderBy(Row(4))">
#row = #lego.layout<"OrderBy(Row(2, 1, 32, 16)).OrderBy(RegP([2, 4, 32, 4], [0, 2, 1, 3])).GroupBy([1024])">
#one = #lego.layout<"OrderBy(Row(2, 1, 32, 1)).GroupBy([1, 64])">

// The barrier counts 8 bytes: those of both CTAs. All CTAs have theirs before the first one sends.
// CHECK-LABEL: func.func @reduce(
// CHECK: gpu.launch
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK-COUNT-4: vector.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.cluster.wait

// Lane 0 serves CTA 0, lane 1 serves CTA 1.
// CHECK: scf.if
// CHECK: mapa.shared::cluster.u32
// CHECK: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32
// CHECK: }
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: vector.load {{.*}} vector<2xf32>
// CHECK: arith.addf
// CHECK-NOT: nvvm.cluster

// One thread of the cluster stores the sum, and each thread its elements.
// CHECK: scf.if
// CHECK-NEXT: memref.store
// CHECK-COUNT-4: vector.store
func.func @reduce(%x: memref<4096xf32> {lego.layout = #X, lego.alignment = 16 : i64},
                  %s: memref<4xf32> {lego.layout = #R},
                  %y: memref<4096xf32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %i = gpu.cluster_id x
    %v = "lego.load"(%x, %i, %c0) {layout = #X, slice = array<i64: 1>}
        : (memref<4096xf32>, index, index) -> tensor<1024xf32, #row>
    %r = "lego.reduce"(%v) {kind = "add", dim = 0 : i64}
        : (tensor<1024xf32, #row>) -> tensor<1xf32, #one>
    %sum = "lego.item"(%r) : (tensor<1xf32, #one>) -> f32
    "lego.store"(%sum, %s, %i) {layout = #R} : (f32, memref<4xf32>, index) -> ()
    %n = arith.negf %v : tensor<1024xf32, #row>
    "lego.store"(%n, %y, %i, %c0) {layout = #X, slice = array<i64: 1>}
        : (tensor<1024xf32, #row>, memref<4096xf32>, index, index) -> ()
    gpu.terminator
  } {lego.cluster = 2 : i64}
  return
}
