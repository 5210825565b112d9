// Indices have 32 bits only where every index of the kernels is proven to fit.
// RUN: sed -e s/SIZE/1048576/ -e s/TYPE/1048576/ %s > %t.small.mlir
// RUN: %legoc %t.small.mlir | FileCheck %s --check-prefix=SMALL
// RUN: sed -e s/SIZE/4294967296/ -e s/TYPE/4294967296/ %s > %t.large.mlir
// RUN: %legoc %t.large.mlir | FileCheck %s --check-prefix=LARGE
// RUN: sed -e s/SIZE/1048576/ -e s/TYPE/?/ %s > %t.dynamic.mlir
// RUN: %legoc %t.dynamic.mlir | FileCheck %s --check-prefix=DYNAMIC

// SMALL: lego.index_bitwidth = 32
// LARGE: lego.index_bitwidth = 64
// DYNAMIC: lego.index_bitwidth = 64
func.func @fill(%out: memref<TYPExf32>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c256, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    "lego.store"(%zero, %out, %bx, %tx) {layout = #lego.layout<"OrderBy(Row(SIZE/256, 256))">}
        : (f32, memref<TYPExf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
