// A host function allocates memory that its launches share: a workspace. One launch names a schedule
// of its own, the other has none.
// RUN: %legoc %s --run --device=sim | FileCheck %s
// RUN: %legoc %s --emit=bundle -o %t.lego
// RUN: %legoc %t.lego --run --device=sim | FileCheck %s
// RUN: %legoc %s --emit=scheduled | FileCheck %s --check-prefix=SCHEDULED
// RUN: %legoc %s --explain | FileCheck %s --check-prefix=EXPLAIN
// RUN: sed -e 's/gpu.alloc () {lego.name = "turned"}/gpu.alloc () {lego.alignment = 512 : i64}/' %s > %t.far.mlir
// RUN: not %legoc %t.far.mlir --emit=bundle -o %t.lego 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: sed -e 's/"unroll"}$/"unroll", lego.params = 4}/' %s > %t.text.mlir
// RUN: not %legoc %t.text.mlir 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: sed -e 's/"unroll"}$/"unroll", lego.params = {factor = 4 : i64}}/' %s > %t.factor.mlir
// RUN: not %legoc %t.factor.mlir 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: sed -e 's/"unroll"/"nosuch"/' %s > %t.nosuch.mlir
// RUN: not %legoc %t.nosuch.mlir 2>&1 | FileCheck %s --check-prefix=NOSUCH

// CHECK: kernel{{ +}}turn{{ +}}grid 1×1×1{{ +}}block 8×1×1
// CHECK-NEXT: kernel{{ +}}twice_kernel{{ +}}grid 1×1×1{{ +}}block 4×1×1
// CHECK: check{{ +}}equal to NumPy's transpose: b: all 32 elements equal

// The loop of the second launch is unrolled, that of the first is not.
// SCHEDULED: scf.for %{{.*}} step %c1
// SCHEDULED: scf.for %{{.*}} step %c4

// EXPLAIN: schedule   none
// EXPLAIN-NEXT: workspace  turned  f32 32, 128 bytes
// EXPLAIN-NEXT: kernel     turn  grid 1×1×1  block 8×1×1
// EXPLAIN-NOT: schedule
// EXPLAIN: kernel     twice_kernel  grid 1×1×1  block 4×1×1
// EXPLAIN-NEXT: schedule   unroll

// FAR: error: lego.alignment of a workspace is a power of two up to 256, not 512
// TEXT: error: lego.params is a dictionary of integers, not '4 : i64'
// FACTOR: error: the schedule 'unroll' has no parameter 'factor'
// NOSUCH: error: there is no schedule 'nosuch'

#A = #lego.layout<"OrderBy(Row(8, 4))">
#B = #lego.layout<"OrderBy(Row(4, 8))">

module attributes {lego.reference = "transpose"} {
  func.func @twice(%a: memref<8x4xf32>, %b: memref<4x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %turned = gpu.alloc () {lego.name = "turned"} : memref<32xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) function(@turn) {
      scf.for %i = %c0 to %c4 step %c1 {
        %v = "lego.load"(%a, %tx, %i) {layout = #A} : (memref<8x4xf32>, index, index) -> f32
        "lego.store"(%v, %turned, %i, %tx) {layout = #B} : (f32, memref<32xf32>, index, index) -> ()
      }
      gpu.terminator
    }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      scf.for %i = %c0 to %c8 step %c1 {
        %v = "lego.load"(%turned, %tx, %i) {layout = #B} : (memref<32xf32>, index, index) -> f32
        "lego.store"(%v, %b, %tx, %i) {layout = #B} : (f32, memref<4x8xf32>, index, index) -> ()
      }
      gpu.terminator
    } {lego.schedule = "unroll"}
    gpu.dealloc %turned : memref<32xf32>
    return
  }
}
