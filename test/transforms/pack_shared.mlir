// The step pack_shared: one dynamic buffer. What is needed after the loop has the bytes of what was
// needed in it, and a barrier parts the two.
// RUN: %legoc %s --schedule=%S/Inputs/copy.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/08-pack_shared.mlir | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/copy.mlir --emit=ptx | FileCheck %s --check-prefix=PTX

#A = #lego.layout<"OrderBy(Row(64, 256)).TileBy([1, 4], [64, 64])">
#S = #lego.layout<"OrderBy(GenP([64, 64], swizzle(8, 1, 8)))">

// PTX: .extern .shared .align 1024 .b8 [[MEMORY:[A-Za-z_0-9]+]][];
// PTX: .entry copies_kernel
// PTX: [[MEMORY]]
// CHECK-LABEL: func.func @copies
func.func @copies(%a: memref<64x256xf16> {lego.alignment = 16 : i64},
                  %b: memref<64x256xf16> {lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %threads = arith.constant 64 : index
  // Four stages of 8 KiB.
  // CHECK-DAG: %[[SIZE:.*]] = arith.constant 32768 : i32
  // CHECK: gpu.launch {{.*}} dynamic_shared_memory_size %[[SIZE]]
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: %[[ALL:.*]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    // CHECK-DAG: %[[ONE:.*]] = memref.view %[[ALL]][%[[O1:.*]]][] : {{.*}} to memref<4096xf16
    // CHECK-DAG: %[[RING:.*]] = memref.view %[[ALL]][%[[O2:.*]]][] : {{.*}} to memref<16384xf16
    // CHECK-DAG: %[[O1]] = arith.constant 0 : index
    // CHECK-DAG: %[[O2]] = arith.constant 0 : index
    // CHECK-NOT: lego.alloc
    // CHECK: nvgpu.device_async_copy %{{.*}}, %[[RING]]
    // CHECK: scf.for
    // CHECK: gpu.barrier
    // CHECK: "lego.load"(%[[RING]]
    // CHECK: gpu.barrier
    // CHECK-NOT: %[[RING]]
    // CHECK: nvgpu.device_async_copy %{{.*}}, %[[ONE]]
    // CHECK: gpu.barrier
    // CHECK: "lego.load"(%[[ONE]]
    scf.for %k = %c0 to %c3 step %c1 {
      %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<64x256xf16>, index, index) -> vector<64x64xf16>
      "lego.store"(%x, %b, %c0, %k) {layout = #A, slice = array<i64: 2, 3>}
          : (vector<64x64xf16>, memref<64x256xf16>, index, index) -> ()
    }
    %x = "lego.load"(%a, %c0, %c3) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
        : (memref<64x256xf16>, index, index) -> vector<64x64xf16>
    "lego.store"(%x, %b, %c0, %c3) {layout = #A, slice = array<i64: 2, 3>}
        : (vector<64x64xf16>, memref<64x256xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}
