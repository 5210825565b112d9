// The step distribute_copies: the copies of each thread, lowered.
// RUN: %legoc %s --schedule=%S/Inputs/distribute_copies.mlir --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/distribute_copies.mlir --emit=scheduled --target=sm_75 \
// RUN:     | FileCheck %s --check-prefix=OLD

#A = #lego.layout<"OrderBy(Row(32, 256)).TileBy([1, 4], [32, 64])">
#S = #lego.layout<"OrderBy(GenP([32, 64], swizzle(8, 1, 8)))">

// 32 threads, 256 chunks of 16 bytes: eight each, from one address on either side. On the way out
// they pass through registers, four at a time; before sm_80 they do so on the way in, too.
// CHECK-LABEL: func.func @vectors
// OLD-LABEL: func.func @vectors
func.func @vectors(%a: memref<32x256xf16> {lego.alignment = 16 : i64},
                   %b: memref<32x256xf16> {lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK-DAG: %[[ROW:.*]] = arith.shrui %[[T:.*]], %c3
    // CHECK-DAG: %[[FROM:.*]] = affine.apply {{.*}}[%[[T]], %[[ROW]]]
    // CHECK: nvgpu.device_async_copy %{{.*}}[%[[FROM]]], %{{.*}}[%[[TO:.*]]], 8 {bypassL1}
    // CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[FROM]], %c1024
    // CHECK: nvgpu.device_async_copy %{{.*}}[%[[NEXT]]], %{{.*}}, 8 {bypassL1}
    // CHECK-COUNT-6: nvgpu.device_async_copy
    // CHECK-NOT: nvgpu.device_async_copy
    // CHECK: nvvm.cp.async.commit.group
    // CHECK-NEXT: nvvm.cp.async.wait.group 0
    // CHECK-NEXT: gpu.barrier
    // CHECK: scf.for %{{.*}} = %c0 to %c256 step %c128
    // CHECK-COUNT-4: vector.load {{.*}} {alignment = 16 : i64}
    // CHECK-COUNT-4: vector.store {{.*}} {alignment = 16 : i64}
    // CHECK-NOT: scf.if
    // CHECK: gpu.terminator
    // OLD-NOT: cp.async
    // OLD-COUNT-4: vector.load {{.*}}memref<8192xf16>, vector<8xf16>
    // OLD-COUNT-4: vector.store {{.*}}workgroup
    // OLD: gpu.barrier
    %x = "lego.load"(%a, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
        : (memref<32x256xf16>, index, index) -> vector<32x64xf16>
    "lego.store"(%x, %b, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>}
        : (vector<32x64xf16>, memref<32x256xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

#P = #lego.layout<"OrderBy(Row(30, 100)).TileBy([1, 2], [32, 64])">

// Rows of 200 bytes begin at multiples of 8: chunks of 4 elements. Of those that partial tiles pad
// nothing is read.
// CHECK-LABEL: func.func @partial
func.func @partial(%a: memref<30x100xf16> {lego.alignment = 16 : i64},
                   %b: memref<30x100xf16> {lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %threads = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK-DAG: %[[SIZE:.*]] = arith.select %{{.*}}, %c4, %c0
    // CHECK: nvgpu.device_async_copy %{{.*}}, %{{.*}}, 4, %[[SIZE]] :
    // CHECK: nvgpu.device_async_copy %{{.*}}, %{{.*}}, 4, %{{.*}} :
    // CHECK-NOT: nvgpu.device_async_copy
    // CHECK: gpu.barrier
    // CHECK: scf.if
    // CHECK: vector.store {{.*}} {alignment = 8 : i64}
    %x = "lego.load"(%a, %c0, %bx) {layout = #P, slice = array<i64: 2, 3>, shared = #S}
        : (memref<30x100xf16>, index, index) -> vector<32x64xf16>
    "lego.store"(%x, %b, %c0, %bx) {layout = #P, slice = array<i64: 2, 3>}
        : (vector<32x64xf16>, memref<30x100xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

#O = #lego.layout<"OrderBy(Row(12, 20)).TileBy([1, 1], [12, 20])">
#R = #lego.layout<"OrderBy(Row(12, 20))">

// 60 chunks for 32 threads: in the second step only some threads have one. The block has a second
// dimension.
// CHECK-LABEL: func.func @rest
func.func @rest(%a: memref<12x20xf32> {lego.alignment = 16 : i64},
                %b: memref<12x20xf32> {lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c4, %sz = %c1) {
    // CHECK-DAG: %[[THREAD:.*]] = affine.apply #{{.*}}[%arg5, %arg6]
    // CHECK: nvgpu.device_async_copy
    // CHECK-DAG: %[[THERE:.*]] = arith.cmpi ult, %[[THREAD]], %c28
    // CHECK: scf.if %[[THERE]] {
    // CHECK: nvgpu.device_async_copy
    // CHECK-NEXT: }
    // CHECK-NEXT: nvvm.cp.async.commit.group
    // CHECK-NEXT: nvvm.cp.async.wait.group 0
    // CHECK-NEXT: gpu.barrier
    %x = "lego.load"(%a, %c0, %c0) {layout = #O, slice = array<i64: 2, 3>, shared = #R}
        : (memref<12x20xf32>, index, index) -> vector<12x20xf32>
    "lego.store"(%x, %b, %c0, %c0) {layout = #O, slice = array<i64: 2, 3>}
        : (vector<12x20xf32>, memref<12x20xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
