// lego.check: a property of a layout that the compilation insists on. It leaves nothing behind.
// RUN: %legoc %s | FileCheck %s
// RUN: not %legoc %s --set W=4 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not %legoc %s --set W=9 2>&1 | FileCheck %s --check-prefix=WIDE

// CHECK-NOT: lego.check
module attributes {lego.sizes = {N = 64, W = 8}} {
  // Each row turned by its number: right for rows of 8 elements and no others.
  func.func private @turn(%i: index, %j: index) -> index {
    %c8 = arith.constant 8 : index
    %0 = arith.addi %i, %j : index
    %1 = arith.remui %0, %c8 : index
    %2 = arith.muli %i, %c8 : index
    %3 = arith.addi %2, %1 : index
    return %3 : index
  }
  func.func private @unturn(%flat: index) -> (index, index) {
    %c8 = arith.constant 8 : index
    %i = arith.divui %flat, %c8 : index
    %column = arith.remui %flat, %c8 : index
    %turn = arith.remui %i, %c8 : index
    %less = arith.cmpi ult, %column, %turn : index
    %back = arith.subi %column, %turn : index
    %wrapped = arith.addi %back, %c8 : index
    %j = arith.select %less, %wrapped, %back : index
    return %i, %j : index, index
  }

  // Anywhere: every element of a small tile is looked at, a large one is proven.
  // WRONG: lego.check.mlir:{{[0-9]+}}:3: error: GenP([64, 4], @turn, @unturn) is no permutation:
  // WRONG-SAME: element [32, 0] goes to position 256, outside of the tile's 256
  // WRONG-NEXT: "lego.check"()
  // WRONG-NEXT: ^
  // WRONG-NEXT: hint: each element goes to a position of its own
  // WIDE: lego.check.mlir:{{[0-9]+}}:3: error: GenP([64, 9], @turn, @unturn) is no permutation:
  // WIDE-SAME: element [0, 0] goes to position 0, as element [0, 8] does
  // WIDE-NEXT: "lego.check"()
  // WIDE-NEXT: ^
  "lego.check"() {layout = #lego.layout<"OrderBy(GenP([N, W], @turn, @unturn))">, bijective} : () -> ()
  "lego.check"() {layout = #lego.layout<"OrderBy(Row(2), GenP([1000000000, 8], @turn, @unturn))">, bijective}
      : () -> ()

  // Sizes that stay symbolic are operands, as everywhere.
  // CHECK-LABEL: func.func @symbolic(
  // CHECK-NEXT: return
  func.func @symbolic(%rows: index, %n: index) {
    "lego.check"(%rows) {layout = #lego.layout<"OrderBy(GenP([R, 8], @turn, @unturn))">, bijective}
        : (index) -> ()
    "lego.check"(%n) {layout = #lego.layout<"OrderBy(GenP([n, n], antidiagonal)).OrderBy(Col(n, n))">, bijective}
        : (index) -> ()
    return
  }

  // CHECK-LABEL: func.func @in_a_kernel(
  // CHECK: gpu.launch
  // CHECK-NEXT: llvm.call_intrinsic "llvm.sideeffect"()
  // CHECK-NEXT: gpu.terminator
  func.func @in_a_kernel() {
    %c1 = arith.constant 1 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      "lego.check"() {layout = #lego.layout<"OrderBy(GenP([8, 8], swizzle)).TileBy([2, 2], [4, 4])">, bijective}
          : () -> ()
      gpu.terminator
    }
    return
  }
}
