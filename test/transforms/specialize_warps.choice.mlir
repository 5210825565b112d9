// The step specialize_warps where CTAs choose among GEMMs: the producer chooses what to fetch,
// the consumers where to store, and neither what it multiplies.
// RUN: %legoc %s --schedule=%S/Inputs/specialize_warps.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/04-specialize_warps.mlir | FileCheck %s

#A = #lego.layout<"OrderBy(Row(16, 64)).TileBy([1, 4], [16, 16])">
#B = #lego.layout<"OrderBy(Row(64, 16)).TileBy([4, 1], [16, 16])">
#D = #lego.layout<"OrderBy(Row(16, 16)).TileBy([1, 1], [16, 16])">
#S = #lego.layout<"OrderBy(GenP([16, 16], tma_swizzle(32, 2)))">

// CHECK-LABEL: func.func @gemms
func.func @gemms(%a: memref<1024xf16>, %d: memref<256xf16>, %b: memref<1024xf16>,
                    %c: memref<256xf32>, %e: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: %[[SA:[a-z0-9_]+]] = "lego.alloc"()
    // CHECK: %[[SB:[a-z0-9_]+]] = "lego.alloc"()
    // CHECK: %[[STEPS:[0-9]+]] = scf.index_switch %[[WHICH:[a-z0-9_]+]] -> index
    // CHECK: scf.for {{.*}} to %[[STEPS]] {{.*}} iter_args(%[[SLOT:[a-z0-9_]+]] =
    // CHECK: nvvm.mbarrier.arrive.expect_tx
    // CHECK-NEXT: scf.index_switch %[[WHICH]]
    // CHECK-NEXT: case 1 {
    // CHECK-NEXT: %[[X:[a-z0-9_]+]] = "lego.load"(%arg1,
    // CHECK-NEXT: "lego.store"(%[[X]], %[[SA]], %[[SLOT]])
    // CHECK-NEXT: scf.yield
    // CHECK: default {
    // CHECK-NEXT: %[[Y:[a-z0-9_]+]] = "lego.load"(%arg0,
    // CHECK-NEXT: "lego.store"(%[[Y]], %[[SA]], %[[SLOT]])
    // CHECK: "lego.load"(%arg2,
    // CHECK-NEXT: "lego.store"({{.*}}, %[[SB]], %[[SLOT]])
    // CHECK: } else {
    // CHECK-NOT: scf.index_switch
    // CHECK: "lego.load"(%[[SA]],
    // CHECK: vector.contract
    // CHECK: scf.index_switch %[[WHICH]]
    // CHECK: "lego.store"({{.*}}, %arg4,
    // CHECK: "lego.store"({{.*}}, %arg3,
    %steps = scf.index_switch %bx -> index
    case 1 { scf.yield %c1 : index }
    default { scf.yield %c4 : index }
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> vector<16x16xf32> {
      %x = scf.index_switch %bx -> vector<16x16xf16>
      case 1 {
        %0 = "lego.load"(%d, %c0, %k) {layout = #D, slice = array<i64: 2, 3>, shared = #S}
            : (memref<256xf16>, index, index) -> vector<16x16xf16>
        scf.yield %0 : vector<16x16xf16>
      }
      default {
        %0 = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
            : (memref<1024xf16>, index, index) -> vector<16x16xf16>
        scf.yield %0 : vector<16x16xf16>
      }
      %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 2, 3>, shared = #S}
          : (memref<1024xf16>, index, index) -> vector<16x16xf16>
      %next = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
          affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"],
          lego.warps = #lego.layout<"OrderBy(Row(4, 1))">} %x, %y, %acc
          : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      scf.yield %next : vector<16x16xf32>
    }
    scf.index_switch %bx
    case 1 {
      "lego.store"(%sum, %e, %c0, %c0) {layout = #D, slice = array<i64: 2, 3>}
          : (vector<16x16xf32>, memref<256xf32>, index, index) -> ()
      scf.yield
    }
    default {
      "lego.store"(%sum, %c, %c0, %c0) {layout = #D, slice = array<i64: 2, 3>}
          : (vector<16x16xf32>, memref<256xf32>, index, index) -> ()
      scf.yield
    }
    gpu.terminator
  }
  return
}
