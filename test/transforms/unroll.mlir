// The schedule `unroll`: loops of kernels by four; loops of the host are left alone.
// RUN: %legoc %s --schedule=unroll --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=%transforms/unroll.mlir --emit=scheduled | FileCheck %s

// CHECK-LABEL: func.func @nine
func.func @nine(%out: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: gpu.launch
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // Eight at once four by four, and one that is left.
    // CHECK: scf.for %{{.*}} = %c0 to %c8 step %c4 {
    // CHECK-COUNT-4: memref.store
    // CHECK-NOT: memref.store
    // CHECK: }
    // CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%c8]
    // CHECK-NOT: memref.store
    // CHECK: gpu.terminator
    scf.for %i = %c0 to %c9 step %c1 {
      "lego.store"(%zero, %out, %i) {layout = #lego.layout<"OrderBy(Row(16))">}
          : (f32, memref<16xf32>, index) -> ()
    }
    gpu.terminator
  }
  return
}

// CHECK-LABEL: func.func @host_loop
func.func @host_loop(%out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1 {
  // CHECK-NEXT: memref.store
  // CHECK-NEXT: }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %zero, %out[%i] : memref<16xf32>
  }
  return
}

// Of two loops the inner one first; a gpu.func is a kernel, too.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @nested
  gpu.func @nested(%out: memref<4x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    // CHECK-COUNT-4: scf.for %{{.*}} = %c0 to %c8 step %c4 {
    // CHECK-NOT: scf.for
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        "lego.store"(%zero, %out, %i, %j) {layout = #lego.layout<"OrderBy(Row(4, 8))">}
            : (f32, memref<4x8xf32>, index, index) -> ()
      }
    }
    // CHECK: gpu.return
    gpu.return
  }
}
