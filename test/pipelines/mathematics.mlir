// mathematics.mlir: what operations of the math dialect call is defined, and inlined.
// RUN: %legoc %s --emit=ptx | FileCheck %s
// RUN: %legoc %s --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: sed -e 's/math.tanh/math.cbrt/' %s > %t.mlir
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=EXTREMES
// RUN: not %legoc %t.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK-NOT: call
// CHECK: ex2.approx.ftz.f32
// CHECK-NOT: call
// CHECK: ex2.approx.ftz.f32
// CHECK: div.approx.f32
// CHECK-NOT: call
// CHECK: ret;

// Maxima and minima are instructions, NaN where an operand is.
// EXTREMES: max.NaN.f32
// EXTREMES: min.NaN.f16

// LLVM: define internal float @__nv_exp2f(float %{{.*}})
// LLVM: define internal float @__nv_tanhf(float %{{.*}})

// UNKNOWN: mlir:{{[0-9]+}}:{{[0-9]+}}: error: a kernel calls the function '__nv_cbrtf' of mathematics, which there is no code for
func.func @both(%a: memref<32xf32>, %b: memref<32xf16>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<32xf32>
    %y = math.exp2 %x : f32
    %zero = arith.constant 0.0 : f32
    %positive = arith.maximumf %y, %zero : f32
    memref.store %positive, %a[%tx] : memref<32xf32>
    // Of f16 it is computed in f32.
    %h = memref.load %b[%tx] : memref<32xf16>
    %t = math.tanh %h : f16
    %one = arith.constant 1.0 : f16
    %least = arith.minimumf %t, %one : f16
    memref.store %least, %b[%tx] : memref<32xf16>
    gpu.terminator
  }
  return
}
