// contractions.mlir: a launch with lego.contract adds products before they are rounded, others do not.
// RUN: %legoc %s --emit=ptx | FileCheck %s
// RUN: sed -e 's/{lego.contract}/{lego.contract = 2 : i64}/' %s > %t.wrong.mlir
// RUN: not %legoc %t.wrong.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: wrong.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'lego.contract' is a unit attribute, not '2 : i64'
// WRONG: hint: {lego.contract} on the gpu.launch, or leave it out

module {
func.func @add_products(%a: memref<32xf32>, %b: memref<32xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  // CHECK: .entry add_products_kernel(
  // CHECK-NOT: {{(mul|add|sub)}}.rn.f32
  // CHECK: fma.rn.f32
  // CHECK-NOT: {{(mul|add|sub)}}.rn.f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<32xf32>
    %y = memref.load %b[%tx] : memref<32xf32>
    %product = arith.mulf %x, %y : f32
    %sum = arith.subf %x, %product : f32
    memref.store %sum, %a[%tx] : memref<32xf32>
    gpu.terminator
  } {lego.contract}
  // CHECK: .entry add_products_kernel_0(
  // CHECK-NOT: fma
  // CHECK: mul.rn.f32
  // CHECK-NOT: fma
  // CHECK: add.rn.f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<32xf32>
    %y = memref.load %b[%tx] : memref<32xf32>
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %x, %product : f32
    memref.store %sum, %a[%tx] : memref<32xf32>
    gpu.terminator
  }
  return
}
}
