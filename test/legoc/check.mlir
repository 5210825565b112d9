// What is not proven of an index is checked in the kernel with --check.
// RUN: %legoc %s --check | FileCheck %s
// RUN: %legoc %s | FileCheck %s --check-prefix=PLAIN
// RUN: %legoc %s --check --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: not %legoc %s --run --device=sim 2>&1 | FileCheck %s --check-prefix=FOUND
// RUN: %legoc %s --run --device=sim --no-check | FileCheck %s --check-prefix=BARE

#A = #lego.layout<"OrderBy(Row(4, 4))">
#B = #lego.layout<"OrderBy(Row(8))">

// CHECK: %[[IS_OUTSIDE:.*]] = arith.cmpi uge, %[[T:.*]], %c4
// CHECK-NEXT: scf.if %[[IS_OUTSIDE]] {
// CHECK-NEXT: %[[SHOWN:.*]] = arith.index_cast %[[T]] : index to i64
// CHECK-NEXT: llvm.inline_asm has_side_effects "trap; // lego.check: index 1 of 'a' is $0, its size is 4", "l" %[[SHOWN]]
// CHECK-NEXT: }
// CHECK-NEXT: memref.load
// CHECK-NOT: scf.if

// PLAIN-NOT: scf.if
// PLAIN: memref.store

// PTX: trap; // lego.check: index 1 of 'a' is %rd{{[0-9]+}}, its size is 4

// FOUND: check.mlir:{{[0-9]+}}:{{[0-9]+}}: error: index 1 of 'a' is 4, its size is 4, in thread (4, 0, 0)
// FOUND-NEXT: "lego.load"(%a, %row, %t)

// BARE: tensor   b  f32 8  written

func.func @wrapped(%a: memref<4x4xf32> {lego.layout = #A}, %b: memref<8xf32> {lego.layout = #B}) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c8, %ny = %c1, %nz = %c1) {
    %row = arith.constant 0 : index
    %v = "lego.load"(%a, %row, %t) {layout = #A} : (memref<4x4xf32>, index, index) -> f32
    "lego.store"(%v, %b, %t) {layout = #B} : (f32, memref<8xf32>, index) -> ()
    gpu.terminator
  }
  return
}
