// Sizes that a module leaves to the launch: those of arrays, or given in the place of an array.
// RUN: %legoc %s --run --device=sim 5x64 5x64 | FileCheck %s
// RUN: not %legoc %s --run --device=sim 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not %legoc %s --run --device=sim 5x63 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not %legoc %examples/transpose.mlir --run --device=sim 64x64 2>&1 | FileCheck %s --check-prefix=FIXED

// CHECK: kernel   double_kernel  grid 5×1×1  block 64×1×1
// CHECK-NEXT: tensor   x  f32 5×64  random, seed 0
// CHECK-NEXT: tensor   y  f32 5×64  written
// MISSING: argument 'x' is not given, and nothing that is given tells its size along dimension 0
// MISSING: pass an array for 'x', or its shape, which legoc takes as 100x64
// WRONG: argument 'x' has shape [?, 64], the array has [5, 63]
// FIXED: argument 'a' has shape [1024, 1024], and 64x64 is given for it
// FIXED: hint: it is fixed where the module is compiled, in legoc by --set NAME=N
func.func @double(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %x, %c0 : memref<?x64xf32>
  gpu.launch blocks(%b, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%b, %t] : memref<?x64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %y[%b, %t] : memref<?x64xf32>
    gpu.terminator
  }
  return
}
