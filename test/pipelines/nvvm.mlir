// nvvm.pipeline: from a gpu.launch with arith, affine, memref, scf and vector to llvm and nvvm.
// RUN: %legoc %s --emit=nvvm --target=sm_90 | FileCheck %s
// RUN: %legoc %s --emit=nvvm --pass-pipeline nvvm=%pipelines/nvvm.pipeline --target=sm_90 | FileCheck %s

// Constants are sunk into the kernel: they are no parameters of it.
// CHECK: gpu.launch_func @kinds_kernel::@kinds_kernel
// CHECK-SAME: args(%{{[a-z0-9]+}} : memref<8x32xf32>, %{{[a-z0-9]+}} : memref<8x32xf32>)
// CHECK: gpu.module @kinds_kernel [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx84">]
// Bare pointers, not memref descriptors; indices of 32 bits.
// CHECK: llvm.func @kinds_kernel(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK: llvm.getelementptr {{.*}} : (!llvm.ptr, i32) -> !llvm.ptr, f32
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.fmul
// CHECK: llvm.store {{.*}} : vector<4xf32>
// A loop is a branch.
// CHECK: llvm.cond_br
// CHECK: llvm.return
// CHECK-NOT: scf.for
func.func @kinds(%a: memref<8x32xf32>, %b: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %two = arith.constant dense<2.0> : vector<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %column = affine.apply affine_map<(d0) -> (d0 * 4)>(%tx)
    %v = vector.load %a[%c0, %column] : memref<8x32xf32>, vector<4xf32>
    %w = arith.mulf %v, %two : vector<4xf32>
    vector.store %w, %b[%c0, %column] : memref<8x32xf32>, vector<4xf32>
    scf.for %i = %c1 to %c8 step %c1 {
      %x = memref.load %a[%i, %column] : memref<8x32xf32>
      memref.store %x, %b[%i, %column] : memref<8x32xf32>
    }
    gpu.terminator
  }
  return
}
