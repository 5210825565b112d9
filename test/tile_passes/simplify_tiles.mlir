// Dead and repeated operations on tiles go, and invariant ones move out of loops. What is the same
// along a dimension is computed before its broadcast.
// RUN: %legoc %s --emit=placed | FileCheck %s

#A = #lego.layout<"OrderBy(Row(64, 64))">

// CHECK:      %[[X:.*]] = "lego.load"(%arg0
// CHECK-NOT:  lego.iota
// CHECK:      %[[S:.*]] = "lego.reduce"(%[[X]])
// CHECK:      %[[C:.*]] = arith.constant dense<2.0{{.*}}> : tensor<64x1xf32
// CHECK:      %[[T:.*]] = arith.mulf %[[S]], %[[C]] : tensor<64x1xf32
// CHECK:      %[[B:.*]] = "lego.broadcast"(%[[T]])
// CHECK-NOT:  lego.broadcast
// CHECK:      scf.for
// CHECK-NOT:  lego.reduce
// CHECK-NOT:  lego.broadcast
// CHECK:      arith.addf %{{.*}}, %[[B]]
// CHECK-NEXT: scf.yield
// CHECK:      arith.addf %{{.*}}, %[[B]]
func.func @main(%a: memref<4096xf32> {lego.layout = #A, lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %x = "lego.load"(%a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>} : (memref<4096xf32>, index, index) -> tensor<64x64xf32>
    %dead = "lego.iota"() {dim = 0 : i64} : () -> tensor<64x64xi32>
    %two = arith.constant dense<2.0> : tensor<64x64xf32>
    %r = scf.for %k = %c0 to %c16 step %one iter_args(%sum = %x) -> (tensor<64x64xf32>) {
      %s = "lego.reduce"(%x) {kind = "add", dim = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x1xf32>
      %b = "lego.broadcast"(%s) : (tensor<64x1xf32>) -> tensor<64x64xf32>
      %t = arith.mulf %b, %two : tensor<64x64xf32>
      %next = arith.addf %sum, %t : tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %s = "lego.reduce"(%x) {kind = "add", dim = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x1xf32>
    %b = "lego.broadcast"(%s) : (tensor<64x1xf32>) -> tensor<64x64xf32>
    %t = arith.mulf %b, %two : tensor<64x64xf32>
    %y = arith.addf %r, %t : tensor<64x64xf32>
    "lego.store"(%y, %a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>} : (tensor<64x64xf32>, memref<4096xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
