// A module names its schedule by lego.schedule; --schedule names another.
// RUN: %legoc %s --emit=scheduled | FileCheck %s --check-prefix=OWN
// RUN: %legoc %s --emit=scheduled --schedule=%S/Inputs/nothing.mlir | FileCheck %s --check-prefix=OTHER
// RUN: sed -e 's/"unroll"/"nosuch"/' %s > %t.nosuch.mlir
// RUN: not %legoc %t.nosuch.mlir 2>&1 | FileCheck %s --check-prefix=NOSUCH
// RUN: sed -e 's/"unroll"/8/' %s > %t.number.mlir
// RUN: not %legoc %t.number.mlir 2>&1 | FileCheck %s --check-prefix=NUMBER

// OWN: scf.for %{{.*}} = %c0 to %c8 step %c4
// OTHER: scf.for %{{.*}} = %c0 to %c8 step %c1
// NOSUCH: error: there is no schedule 'nosuch'
// NUMBER: error: lego.schedule is a schedule's name in quotes, not '8 : i64'
module attributes {lego.schedule = "unroll"} {
  func.func @eight(%out: memref<16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      scf.for %i = %c0 to %c8 step %c1 {
        "lego.store"(%zero, %out, %i) {layout = #lego.layout<"OrderBy(Row(16))">}
            : (f32, memref<16xf32>, index) -> ()
      }
      gpu.terminator
    }
    return
  }
}
