// A tensor whose layout is the module's own pair of functions: --run brings data into it and back.
// A bundle has no functions, and says so.
// RUN: %legoc %s --run --device=sim | FileCheck %s
// RUN: %legoc %s --emit=bundle -o %t.lego
// RUN: not %legoc %t.lego --run --device=sim 2> %t.err
// RUN: FileCheck %s --check-prefix=BUNDLE < %t.err

// CHECK: check    equal to NumPy's copy: b: all 64 elements equal
// BUNDLE: error: argument 'b' has the layout 'OrderBy(GenP([8, 8], @skew, @unskew))'; its functions are not in the artifact
// BUNDLE: hint: run the module itself

#rows = #lego.layout<"OrderBy(Row(8, 8))">
#skewed = #lego.layout<"OrderBy(GenP([8, 8], @skew, @unskew))">

module attributes {lego.reference = "copy"} {
  // Row i is rotated to the right by i.
  func.func private @skew(%i: index, %j: index) -> index {
    %c8 = arith.constant 8 : index
    %0 = arith.addi %i, %j : index
    %1 = arith.remui %0, %c8 : index
    %2 = arith.muli %i, %c8 : index
    %3 = arith.addi %2, %1 : index
    return %3 : index
  }

  func.func private @unskew(%flat: index) -> (index, index) {
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %i = arith.divui %flat, %c8 : index
    %0 = arith.muli %i, %c7 : index
    %1 = arith.addi %0, %flat : index
    %j = arith.remui %1, %c8 : index
    return %i, %j : index, index
  }

  func.func @copy(%a: memref<8x8xf32> {lego.layout = #rows},
                  %b: memref<8x8xf32> {lego.layout = #skewed}) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tid, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
      %i, %j = "lego.inv"(%tid) {layout = #rows} : (index) -> (index, index)
      %v = "lego.load"(%a, %i, %j) {layout = #rows} : (memref<8x8xf32>, index, index) -> f32
      "lego.store"(%v, %b, %i, %j) {layout = #skewed} : (f32, memref<8x8xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
