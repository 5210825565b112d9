// The step specialize_warps with promote: sums of three steps each, added up outside.
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.promote.mlir --emit=scheduled --keep %t \
// RUN:     -o %t.out
// RUN: cat %t/02-specialize_warps.mlir | FileCheck %s --check-prefixes=CHECK,SOME
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.promote.mlir --param promote=1 \
// RUN:     --emit=scheduled --keep %t1 -o %t1.out
// RUN: cat %t1/02-specialize_warps.mlir | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.promote.mlir --param promote=2 \
// RUN:     --emit=scheduled --keep %t2 -o %t2.out
// RUN: cat %t2/02-specialize_warps.mlir | FileCheck %s --check-prefix=EVEN

#A = #lego.layout<"OrderBy(Row(16, 64)).TileBy([1, 4], [16, 16])">
#B = #lego.layout<"OrderBy(Row(64, 16)).TileBy([4, 1], [16, 16])">
#S = #lego.layout<"OrderBy(GenP([16, 16], tma_swizzle(32, 2)))">

// CHECK-LABEL: func.func @gemm
func.func @gemm(%a: memref<1024xf16>, %b: memref<1024xf16>, %c: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: } else {
    // CHECK: %[[REACH:[a-z0-9_]+]] = arith.muli %c1
    // CHECK-NEXT: %[[ZERO:[a-z0-9_]+]] = arith.constant dense<0.000000e+00> : vector<16x16xf32>
    // CHECK-NEXT: scf.for %[[K:[a-z0-9_]+]] = %c0 to %c4 step %[[REACH]] iter_args(%[[SUM:[a-z0-9_]+]] =
    // CHECK-NEXT: %[[END:[a-z0-9_]+]] = arith.addi %[[K]], %[[REACH]]
    // Four steps are no multiple of three: the last promotion comes earlier.
    // SOME-NEXT: %[[LAST:[a-z0-9_]+]] = arith.minui %[[END]], %c4
    // EVEN-NOT: arith.minui
    // CHECK: vector.contract {{.*}}, %[[ZERO]] {lego.warps
    // SOME: %[[PART:[0-9]+]]:4 = scf.for {{.*}} to %[[LAST]] step %c1
    // SOME: vector.contract
    // One iteration per promotion needs no loop.
    // ONE-NOT: scf.for
    // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
    // CHECK: nvvm.mbarrier.arrive
    // SOME: arith.addf %[[SUM]], %[[PART]]#0 : vector<16x16xf32>
    // ONE: arith.addf %[[SUM]], %{{[0-9]+}} : vector<16x16xf32>
    // CHECK-NEXT: scf.yield
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> vector<16x16xf32> {
      %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<1024xf16>, index, index) -> vector<16x16xf16>
      %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 2, 3>, shared = #S}
          : (memref<1024xf16>, index, index) -> vector<16x16xf16>
      %next = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
          affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"],
          lego.warps = #lego.layout<"OrderBy(Row(4, 1))">} %x, %y, %acc
          : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      scf.yield %next : vector<16x16xf32>
    }
    gpu.terminator
  }
  return
}
