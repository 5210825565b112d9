// divisions.mlir: short floats are divided in line, f64 exactly, powers of two by multiplication.
// RUN: %legoc %s --emit=nvvm | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %s --emit=ptx --exact-math | FileCheck %s --check-prefix=EXACT
// RUN: sed -e 's/^module/module attributes {lego.exact_math}/' %s > %t.mlir
// RUN: %legoc %t.mlir --emit=ptx | FileCheck %s --check-prefix=EXACT
// RUN: sed -e 's/^module/module attributes {lego.exact_math = 2 : i64}/' %s > %t.wrong.mlir
// RUN: not %legoc %t.wrong.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: wrong.mlir:{{[0-9]+}}:1: error: lego.exact_math is a unit attribute, not '2 : i64'
// WRONG: hint: module attributes {lego.exact_math}, or leave it out

// EXACT-NOT: div.full
// EXACT: div.rn.f32
// EXACT: div.rn.f32
// EXACT: mul.rn.f32
// EXACT: rcp.rn.f32
// EXACT: div.rn.f64
// EXACT-NOT: div.full

module {
func.func @divide(%a: memref<32xf32>, %h: memref<32xf16>, %d: memref<32xf64>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    // CHECK: %[[X:.*]] = llvm.load {{.*}} -> f32
    // CHECK: %[[THIRD:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%[[X]], %{{.*}}) : (f32, f32) -> f32
    // PTX: div.full.f32
    %x = memref.load %a[%tx] : memref<32xf32>
    %three = arith.constant 3.0 : f32
    %third = arith.divf %x, %three : f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"(%[[THIRD]], %[[X]]) : (f32, f32) -> f32
    // PTX: div.full.f32
    %over = arith.divf %third, %x : f32
    // CHECK: llvm.fdiv %{{.*}}, %{{.*}} : f32
    // PTX: mul.rn.f32
    %four = arith.constant 4.0 : f32
    %quarter = arith.divf %over, %four : f32
    memref.store %quarter, %a[%tx] : memref<32xf32>
    // CHECK: llvm.fpext
    // CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
    // CHECK: llvm.fptrunc
    // PTX: div.full.f32
    %y = memref.load %h[%tx] : memref<32xf16>
    %one = arith.constant 1.0 : f16
    %inverse = arith.divf %one, %y : f16
    memref.store %inverse, %h[%tx] : memref<32xf16>
    // CHECK: llvm.fdiv %{{.*}}, %{{.*}} : f64
    // PTX: div.rn.f64
    %z = memref.load %d[%tx] : memref<32xf64>
    %big = arith.divf %z, %z : f64
    memref.store %big, %d[%tx] : memref<32xf64>
    gpu.terminator
  }
  return
}
}
