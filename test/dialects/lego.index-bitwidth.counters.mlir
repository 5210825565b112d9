// A number that a loop counts up has the range of its first value and of what all iterations add.
// RUN: sed -e s/TRIPS/c1000/ -e s/MORE/bounded/ %s > %t.known.mlir
// RUN: %legoc %t.known.mlir | FileCheck %s --check-prefix=KNOWN
// RUN: sed -e s/TRIPS/c1000/ -e s/MORE/difference/ %s > %t.less.mlir
// RUN: %legoc %t.less.mlir | FileCheck %s --check-prefix=WIDE
// RUN: sed -e s/TRIPS/c1000/ -e s/MORE/k/ %s > %t.doubled.mlir
// RUN: %legoc %t.doubled.mlir | FileCheck %s --check-prefix=WIDE
// RUN: sed -e s/TRIPS/c1000/ -e s/MORE/own/ %s > %t.own.mlir
// RUN: %legoc %t.own.mlir | FileCheck %s --check-prefix=WIDE
// RUN: sed -e s/TRIPS/c10000000/ -e s/MORE/bounded/ %s > %t.long.mlir
// RUN: %legoc %t.long.mlir | FileCheck %s --check-prefix=WIDE

// KNOWN: lego.index_bitwidth = 32
// WIDE: lego.index_bitwidth = 64
func.func @fill(%out: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c1000 = arith.constant 1000 : index
  %c10000000 = arith.constant 10000000 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c256, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %bounded = arith.addi %bx, %c1 : index
    %difference = arith.subi %bx, %tx : index
    %count = scf.for %i = %c0 to %TRIPS step %c1 iter_args(%k = %c0) -> (index) {
      %half = arith.divui %k, %c2 : index
      %own = arith.addi %k, %bounded : index
      %at = arith.remui %half, %c256 : index
      "lego.store"(%zero, %out, %at) {layout = #lego.layout<"OrderBy(Row(256))">}
          : (f32, memref<256xf32>, index) -> ()
      %next = arith.addi %k, %MORE : index
      scf.yield %next : index
    }
    %last = arith.remui %count, %c256 : index
    "lego.store"(%zero, %out, %last) {layout = #lego.layout<"OrderBy(Row(256))">}
        : (f32, memref<256xf32>, index) -> ()
    gpu.terminator
  }
  return
}
