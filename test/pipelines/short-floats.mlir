// short-floats.mlir: conversions of 8-bit floats are instructions, or arithmetic on bits.
// RUN: %legoc %s --emit=nvvm | FileCheck %s
// RUN: %legoc %s --emit=ptx --target=sm_89 | FileCheck %s --check-prefix=PTX
// RUN: %legoc %s --emit=ptx --target=sm_80 | FileCheck %s --check-prefix=OLD
// RUN: sed -e 's/%x : f32 to/%x upward : f32 to/' %s > %t.mlir
// RUN: not %legoc %t.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=UPWARD

// OLD-NOT: e4m3
// OLD: ret;

// UPWARD: 'arith.truncf' is left

func.func @convert(%a: memref<32xf32>, %b: memref<32xf8E4M3FN>, %c: memref<32xi32>,
                   %d: memref<32xf8E5M2>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    // CHECK: %[[X:.*]] = llvm.load {{.*}} -> f32
    // CHECK: %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%{{.*}}, %[[X]]) : (f32, f32) -> i16
    // CHECK: llvm.trunc %[[PAIR]] : i16 to i8
    // PTX: cvt.rn.satfinite.e4m3x2.f32
    %x = memref.load %a[%tx] : memref<32xf32>
    %y = arith.truncf %x : f32 to f8E4M3FN
    memref.store %y, %b[%tx] : memref<32xf8E4M3FN>
    // CHECK: llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"
    // CHECK: llvm.fptoui %{{.*}} : f32 to i32
    // PTX: cvt.rn.f16x2.e5m2x2
    // PTX: cvt.rzi.u32.f
    %z = memref.load %d[%tx] : memref<32xf8E5M2>
    %n = arith.fptoui %z : f8E5M2 to i32
    memref.store %n, %c[%tx] : memref<32xi32>
    // CHECK: llvm.uitofp %{{.*}} : i32 to f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"
    // PTX: cvt.rn.f32.u32
    // PTX: cvt.rn.satfinite.e5m2x2.f32
    %m = arith.uitofp %n : i32 to f8E5M2
    memref.store %m, %d[%tx] : memref<32xf8E5M2>
    gpu.terminator
  }
  return
}
