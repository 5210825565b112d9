// Reductions over a warp are shuffles; those over a CTA go by way of shared memory besides, once for
// each warp, and have a barrier after the stores and one after the loads.
// RUN: %legoc %s --emit=nvvm --target=sm_90 | FileCheck %s

// CHECK-LABEL: llvm.func @host_kernel
// Over eight lanes, two apart: of 16 bits each, in 32.
// CHECK: llvm.zext {{.*}} : i16 to i32
// CHECK: nvvm.shfl.sync bfly
// CHECK: llvm.fadd {{.*}} : f16
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.barrier
// Over the CTA, of 64 threads, by the warp's five shuffles.
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.cond_br
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load {{.*}} : !llvm.ptr<3> -> f32
// CHECK: llvm.fcmp "ugt"
// CHECK: nvvm.barrier
// CHECK: llvm.return
// CHECK: llvm.mlir.global private @partial_4_f32() {addr_space = 3 : i32, {{.*}} : !llvm.array<4 x f32>
func.func @host(%a: memref<64xf16>, %b: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c64, %ny = %c1, %nz = %c1) {
    %v = memref.load %a[%t] : memref<64xf16>
    %s = gpu.subgroup_reduce add %v cluster(size = 8, stride = 2) : (f16) -> f16
    memref.store %s, %a[%t] : memref<64xf16>
    gpu.barrier
    %w = memref.load %b[%t] : memref<64xf32>
    %x = gpu.all_reduce maxnumf %w {} : (f32) -> f32
    memref.store %x, %b[%t] : memref<64xf32>
    gpu.terminator
  }
  return
}
