// The step unroll_short marks the loop of four iterations, which LLVM then unrolls, but not that of
// eight, nor one whose iterations only the launch knows.
// RUN: %legoc %s --schedule=%S/Inputs/unroll_short.mlir --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/unroll_short.mlir --param unroll=0 --emit=scheduled \
// RUN:     | FileCheck %s --check-prefix=NONE
// RUN: %legoc %s --schedule=%S/Inputs/unroll_short.mlir --run --device=sim
// RUN: sed -e 's/default = 4/default = -4/' %S/Inputs/unroll_short.mlir > %t.negative.mlir
// RUN: not %legoc %s --schedule=%t.negative.mlir --emit=scheduled 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: sed -e 's/scf.for/gpu.launch/' %S/Inputs/unroll_short.mlir > %t.no-loop.mlir
// RUN: not %legoc %s --schedule=%t.no-loop.mlir --emit=scheduled 2>&1 | FileCheck %s --check-prefix=NO-LOOP

// NEGATIVE: error: unroll_short: unroll is -4
// NEGATIVE: hint: --param unroll=8
// NO-LOOP: error: unroll_short: expected a scf.for, found 'gpu.launch'
// NONE-NOT: loop_annotation

#L = #lego.layout<"OrderBy(Row(13, 32))">

// CHECK-LABEL: func.func @rows
// CHECK: scf.for
// CHECK: } {llvm.loop_annotation = #{{.*}}}
// CHECK: scf.for
// CHECK-NOT: loop_annotation
// CHECK: gpu.terminator

func.func @rows(%a: memref<13x32xf32> {lego.layout = #L}, %b: memref<13x32xf32> {lego.layout = #L}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    scf.for %i = %c0 to %c4 step %c1 {
      %x = "lego.load"(%a, %i, %tx) {layout = #L} : (memref<13x32xf32>, index, index) -> f32
      "lego.store"(%x, %b, %i, %tx) {layout = #L} : (f32, memref<13x32xf32>, index, index) -> ()
    }
    scf.for %i = %c4 to %c12 step %c1 {
      %x = "lego.load"(%a, %i, %tx) {layout = #L} : (memref<13x32xf32>, index, index) -> f32
      "lego.store"(%x, %b, %i, %tx) {layout = #L} : (f32, memref<13x32xf32>, index, index) -> ()
    }
    scf.for %i = %tx to %c32 step %c32 {
      %x = "lego.load"(%a, %c12, %i) {layout = #L} : (memref<13x32xf32>, index, index) -> f32
      "lego.store"(%x, %b, %c12, %i) {layout = #L} : (f32, memref<13x32xf32>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}
