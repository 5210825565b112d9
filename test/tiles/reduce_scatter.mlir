// Two CTAs of a cluster add up their tiles: each sends the half that the other one gets.
// RUN: %legoc %s | FileCheck %s
// RUN: %legoc %s --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: sed 's/%b, %c2 : index/%b, %c1 : index/' %s > %t.mlir
// RUN: not %legoc %t.mlir 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: sed 's/lego.cluster = 2 : i64, //' %s > %t.mlir
// RUN: not %legoc %t.mlir 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: sed 's/lego.cluster = 2/lego.cluster = 4/' %s > %t.mlir
// RUN: not %legoc %t.mlir 2>&1 | FileCheck %s --check-prefix=SLICES
// RUN: sed 's/kind = "add"/kind = "or"/' %s > %t.mlir
// RUN: not %legoc %t.mlir 2>&1 | FileCheck %s --check-prefix=KIND

#X = #lego.layout<"OrderBy(Row(4, 8, 64))">
#Y = #lego.layout<"OrderBy(Row(2, 8, 64))">

// Thread 0 announces the bytes of a half: 8 x 32 elements of 4 bytes.
// CHECK-LABEL: func.func @total(
// CHECK:      %[[CTA:.*]] = gpu.cluster_block_id x
// CHECK:      nvvm.mbarrier.init
// CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx {{.*}}, %c1024_i32
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK:      nvvm.cluster.arrive.relaxed

// All CTAs have their barriers before the first one sends. No CTA sends to itself.
// CHECK:      %[[SENDS:.*]] = arith.cmpi ne, %[[CTA]], %c0
// CHECK:      nvvm.cluster.wait
// CHECK-NEXT: scf.if %[[SENDS]]
// CHECK-COUNT-2: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32
// CHECK:      arith.cmpi ne, %[[CTA]], %c1
// CHECK-NEXT: scf.if
// CHECK-COUNT-2: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32
// CHECK:      scf.index_switch %[[CTA]]
// CHECK:      nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-2: arith.addf {{.*}} : vector<4xf32>
// CHECK-NOT:  nvvm.cluster

// STEPS:      assign_layouts: every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// RANK:       error: 'lego.reduce_scatter' of a number that is not known to be the rank of the CTA in its cluster
// RANK:       hint: it is the remainder of the CTA's number along x by the size of the cluster
// OWN:        error: 'lego.reduce_scatter' in a kernel without clusters whose CTAs run programs of their own
// OWN:        hint: {{.*}}lego.own_programs
// SLICES:     error: 'lego.reduce_scatter' has slices of 32 of the 64 elements along dimension 1, in a cluster of 4 CTAs
// KIND:       error: 'lego.reduce_scatter' has the kind 'or', and elements of f32
func.func @total(%x: memref<2048xf32> {lego.layout = #X, lego.alignment = 16 : i64},
                 %y: memref<1024xf32> {lego.layout = #Y, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %b, %c0, %c0) {layout = #X, slice = array<i64: 1, 2>}
        : (memref<2048xf32>, index, index, index) -> tensor<8x64xf32>
    %cluster = arith.divui %b, %c2 : index
    %rank = arith.remui %b, %c2 : index
    %own = "lego.reduce_scatter"(%v, %rank) {kind = "add", dim = 1 : i64}
        : (tensor<8x64xf32>, index) -> tensor<8x32xf32>
    %j = arith.muli %rank, %c32 : index
    "lego.store"(%own, %y, %cluster, %c0, %j) {layout = #Y, slice = array<i64: 1, 2>}
        : (tensor<8x32xf32>, memref<1024xf32>, index, index, index) -> ()
    gpu.terminator
  } {lego.cluster = 2 : i64, lego.own_programs}
  return
}
