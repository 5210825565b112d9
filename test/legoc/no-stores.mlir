// A kernel that stores nothing is a kernel: it is launched, and does nothing.
// RUN: %legoc %s --run --device=sim | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX

// CHECK: kernel   reads_kernel  grid 2×1×1  block 64×1×1
// CHECK: kernel   reads_kernel_0  grid 3×1×1  block 32×1×1
// CHECK: tensor   a  f32 64

// PTX: .visible .entry reads_kernel(
// PTX-NOT: ld.global
// PTX: ret;
// PTX: .visible .entry reads_kernel_0(
// PTX-NOT: ld.global
// PTX: ret;
func.func @reads(%a: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c64, %ny = %c1, %nz = %c1) {
    %v = memref.load %a[%t] : memref<64xf32>
    scf.for %i = %c1 to %c3 step %c1 {
      %w = memref.load %a[%i] : memref<64xf32>
    }
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c32, %ny = %c1, %nz = %c1) {
    gpu.terminator
  }
  return
}
