// Names of lego.sizes in the layouts of tiles' types are numbers, also those of constants.
// RUN: %legoc %s --emit=placed | FileCheck %s
// RUN: %legoc %s --run | FileCheck %s --check-prefix=SAME
// RUN: not %legoc %s --set N=16 --emit=placed 2>&1 | FileCheck %s --check-prefix=OTHER

#T = #lego.layout<"OrderBy(Row(1, N, 32)).OrderBy(Row(N, 32)).GroupBy([32, N])">
#S = #lego.shared<"OrderBy(GenP([N, N], swizzle))">
#A = #lego.layout<"OrderBy(Row(N, N))">

// CHECK: arith.constant dense<0.000000e+00> : tensor<32x32xf32, #lego.layout<"OrderBy(Row(1, 32, 32)).GroupBy([32, 32])">>
// CHECK: "lego.convert"{{.*}} -> tensor<32x32xf32, #lego.shared<"OrderBy(GenP([32, 32], swizzle))">>
// SAME:  check    equal to NumPy's transpose: y: all 1024 elements equal
// OTHER: sizes_in_types.mlir:{{[0-9:]+}} error: the layout of a tile [32, 32]
module attributes {lego.sizes = {N = 32}} {
  func.func @transpose(%x: memref<32x32xf32> {lego.layout = #A}, %y: memref<32x32xf32> {lego.layout = #A})
      attributes {lego.reference = "transpose"} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
      %c0 = arith.constant 0 : index
      %zeros = arith.constant dense<0.0> : tensor<32x32xf32, #T>
      %a = "lego.load"(%x, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>}
          : (memref<32x32xf32>, index, index) -> tensor<32x32xf32, #T>
      %sum = arith.addf %a, %zeros : tensor<32x32xf32, #T>
      %s = "lego.convert"(%sum) : (tensor<32x32xf32, #T>) -> tensor<32x32xf32, #S>
      %b = "lego.convert"(%s) : (tensor<32x32xf32, #S>) -> tensor<32x32xf32, #T>
      %t = "lego.transpose"(%b) {order = array<i64: 1, 0>} : (tensor<32x32xf32, #T>) -> tensor<32x32xf32>
      "lego.store"(%t, %y, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>}
          : (tensor<32x32xf32>, memref<32x32xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
