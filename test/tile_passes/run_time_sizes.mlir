// Sizes that only the launch knows: what lies beyond a row's size is invalid, and its reductions ignore it.
// RUN: %legoc %s --emit=placed | FileCheck %s
#A = #lego.layout<"OrderBy(Row(M, N{16}))">

// CHECK: func.func @rows
// CHECK: %[[N:.*]] = memref.dim %arg0, %c1
// CHECK: lego.load
// CHECK-SAME: slice = array<i64: 1>
// CHECK-SAME: tensor<256xf32, #lego.layout<
// CHECK: lego.in_range"(%c0{{.*}}, %[[N]]) {dim = 0 : i64, divisor = 16 : i64, size = 2147483647 : i64}
// CHECK: arith.select
// CHECK: lego.reduce
func.func @rows(%x: memref<?x?xf32> {lego.layout = #A, lego.bounds = array<i64: 0, 257>,
                                     lego.elements = 2147418112 : i64},
                %y: memref<?xf32> {lego.layout = #lego.layout<"OrderBy(Row(M))">}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  gpu.launch blocks(%b, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %row = "lego.load"(%x, %b, %c0, %m, %n) {layout = #A, slice = array<i64: 1>}
        : (memref<?x?xf32>, index, index, index, index) -> tensor<256xf32>
    %e = math.exp %row : tensor<256xf32>
    %total = "lego.reduce"(%e) {dim = 0 : i64, kind = "add"} : (tensor<256xf32>) -> tensor<1xf32>
    %sum = "lego.item"(%total) : (tensor<1xf32>) -> f32
    "lego.store"(%sum, %y, %b, %m) {layout = #lego.layout<"OrderBy(Row(M))">}
        : (f32, memref<?xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}

// Of the first 128 elements of a row all are there, where the row has 200 at least.
// CHECK: func.func @prefix
// CHECK-NOT: lego.in_range
// CHECK: lego.reduce
func.func @prefix(%x: memref<?x?xf32> {lego.layout = #A, lego.least = array<i64: 0, 200>},
                  %y: memref<?xf32> {lego.layout = #lego.layout<"OrderBy(Row(M))">}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  gpu.launch blocks(%b, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %row = "lego.load"(%x, %b, %c0, %m, %n) {layout = #A, slice = array<i64: 1>}
        : (memref<?x?xf32>, index, index, index, index) -> tensor<128xf32>
    %total = "lego.reduce"(%row) {dim = 0 : i64, kind = "add"} : (tensor<128xf32>) -> tensor<1xf32>
    %sum = "lego.item"(%total) : (tensor<1xf32>) -> f32
    "lego.store"(%sum, %y, %b, %m) {layout = #lego.layout<"OrderBy(Row(M))">}
        : (f32, memref<?xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
