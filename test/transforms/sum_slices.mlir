// The step split_k with lego.sum_slices: CTAs of three slices add up in global memory.
// RUN: %legoc %s --schedule=%S/Inputs/split_k.mlir --param split_k=3 --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/03-split_k.mlir | FileCheck %s
// RUN: cat %t/07-contract_to_wgmma.mlir | FileCheck %s --check-prefix=L2
// RUN: sed 's/{slices = 1 : i64}/{slices = 1 : i64, in_order}/; s/memref<12288xf32>/memref<36864xf32>/' %s > %t.mlir
// RUN: %legoc %t.mlir --schedule=%S/Inputs/split_k.mlir --param split_k=3 --emit=scheduled --keep %t1 -o %t1.out
// RUN: cat %t1/07-contract_to_wgmma.mlir | FileCheck %s --check-prefix=ORDER
// RUN: sed 's/memref<12288xf32>/memref<12287xf32>/' %s > %t2.mlir
// RUN: not %legoc %t2.mlir --schedule=%S/Inputs/split_k.mlir --param split_k=3 --emit=ptx 2>&1 | FileCheck %s --check-prefix=SMALL

#A = #lego.layout<"OrderBy(Row(64, 384)).TileBy([1, 6], [64, 64])">
#B = #lego.layout<"OrderBy(Row(384, 192)).TileBy([6, 3], [64, 64])">
#C = #lego.layout<"OrderBy(Row(64, 192)).TileBy([1, 3], [64, 64])">
#S = #lego.layout<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#chunk = #lego.layout<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#warps = #lego.layout<"OrderBy(Row(4, 1))">

func.func @product(%a: memref<24576xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                   %b: memref<73728xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                   %sums: memref<12288xf32>, %arrivals: memref<3xi32>,
                   %c: memref<12288xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %threads = arith.constant 128 : index
  // CHECK: gpu.launch blocks(%[[BLOCK:arg[0-9]+]], {{.*}}) in (%{{.*}} = %c9{{[_0-9]*}},
  // CHECK: %[[ID:[0-9]+]]:2 = "lego.inv"(%[[BLOCK]]) {layout = #lego.layout<"OrderBy(Row(3, 3))">}
  gpu.launch blocks(%n, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    // CHECK: %[[SUM:[0-9]+]] = scf.for %[[STEP:arg[0-9]+]] = %c0 to %c2
    // CHECK: "lego.apply"(%[[ID]]#0, %[[STEP]]) {layout = #lego.layout<"OrderBy(Row(3, 2))">}
    %sum = scf.for %k = %c0 to %c6 step %c1 iter_args(%part = %zero) -> vector<64x64xf32> {
      %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<24576xf16>, index, index) -> vector<64x64xf16>
      %y = "lego.load"(%b, %k, %n) {layout = #B, slice = array<i64: 2, 3>, shared = #S}
          : (memref<73728xf16>, index, index) -> vector<64x64xf16>
      %next = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
                                                affine_map<(i, j, k) -> (k, j)>,
                                                affine_map<(i, j, k) -> (i, j)>],
                               iterator_types = ["parallel", "parallel", "reduction"],
                               lego.warps = #warps}
          %x, %y, %part : vector<64x64xf16>, vector<64x64xf16> into vector<64x64xf32>
      scf.yield %next : vector<64x64xf32>
    }
    // CHECK: %[[TOTAL:[0-9]+]] = "lego.sum_slices"(%[[SUM]], %[[ID]]#1, %[[ID]]#0, %arg{{[0-9]+}}, %arg{{[0-9]+}}) {slices = 3 : i64}
    // CHECK: arith.truncf %[[TOTAL]]
    // CHECK-NOT: lego.cluster
    %c0_slice = arith.constant 0 : index
    %total = "lego.sum_slices"(%sum, %n, %c0_slice, %sums, %arrivals) {slices = 1 : i64}
        : (vector<64x64xf32>, index, index, memref<12288xf32>, memref<3xi32>) -> vector<64x64xf32>
    %result = arith.truncf %total : vector<64x64xf32> to vector<64x64xf16>
    "lego.store"(%result, %c, %c0, %n) {layout = #C, slice = array<i64: 2, 3>, shared = #chunk}
        : (vector<64x64xf16>, memref<12288xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

// Sixteen bytes a lane, the barrier of all consumers, one arrival, and the rest for the last CTA.
// L2: red.relaxed.gpu.global.add.v4.f32
// L2: nvvm.barrier
// L2: scf.if
// L2: atom.acq_rel.gpu.global.add.u32
// L2: nvvm.barrier
// L2: %[[LAST:.*]] = arith.cmpi eq
// L2: scf.if %[[LAST]] {
// L2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// L2: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// L2: nvvm.cp.async.bulk.tensor.global.shared.cta

// ORDER-NOT: red.relaxed
// ORDER: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// ORDER: atom.acq_rel.gpu.global.add.u32
// ORDER: llvm.load
// ORDER: scf.for
// ORDER: llvm.load
// ORDER: arith.addf
// ORDER: scf.yield

// SMALL: error: contract_to_wgmma: the sums of tiles of vector<64x64xf32> do not fit memref<12287xf32>
