// Sizes of layouts that are numbers are constants before steps ask how often a loop runs; others stay.
// RUN: %legoc %s --emit=placed | FileCheck %s
// RUN: sed -e 's/dim = 1}/dim = 5}/' %s > %t.mlir
// RUN: not %legoc %t.mlir --emit=index 2>&1 | FileCheck %s --check-prefix=WRONG

#A = #lego.layout<"OrderBy(Row(4, 256))">
#B = #lego.layout<"OrderBy(Row(M, 256))">

// CHECK:     func.func @main
// CHECK-NOT: lego.dim
// CHECK:     %[[N:.*]] = arith.constant 256 : index
// CHECK:     %[[M:.*]] = "lego.dim"(%{{.*}}) {dim = 0 : i64, layout = #lego.layout<"OrderBy(Row(M, 256))">}
// CHECK:     gpu.launch
// CHECK:     %[[ALL:.*]] = arith.constant 1024 : index
// CHECK:     arith.addi %[[N]], %[[ALL]]
// CHECK:     arith.addi %{{.*}}, %[[M]]

// WRONG: fold_sizes.mlir.tmp.mlir:{{[0-9:]+}} error: 'lego.dim': dimension 5 is not in [0, 2)
func.func @main(%a: memref<4x256xf32> {lego.layout = #A, lego.alignment = 16 : i64},
                %b: memref<?x256xf32> {lego.layout = #B, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %rows = memref.dim %b, %c0 : memref<?x256xf32>
  %n = "lego.dim"() {layout = #A, dim = 1} : () -> index
  %m = "lego.dim"(%rows) {layout = #B, dim = 0} : (index) -> index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %x = "lego.load"(%a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>}
        : (memref<4x256xf32>, index, index) -> tensor<4x256xf32>
    %all = "lego.size"() {layout = #A} : () -> index
    %s = arith.addi %n, %all : index
    %t = arith.addi %s, %m : index
    %i = arith.index_cast %t : index to i32
    %f = arith.sitofp %i : i32 to f32
    %y = "lego.full"(%f) : (f32) -> tensor<4x256xf32>
    %z = arith.addf %x, %y : tensor<4x256xf32>
    "lego.store"(%z, %a, %c0, %c0) {layout = #A, slice = array<i64: 0, 1>}
        : (tensor<4x256xf32>, memref<4x256xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
