// Lego operations in functions: a helper is lowered by itself, called by a kernel, and runs.
// RUN: %legoc %s | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %s --run --device=sim | FileCheck %s

// INDEX: affine_map<()[s0, s1] -> (s0 + s1 * 8)>
// INDEX-LABEL: func.func @transposed
// INDEX: affine.apply
// INDEX-NEXT: return
// INDEX-LABEL: func.func @host
// INDEX: func.call @transposed
// CHECK: check{{ +}}equal to NumPy's transpose: b: all 64 elements equal
module attributes {lego.reference = "transpose"} {
  func.func @transposed(%i: index, %j: index) -> index {
    %0 = "lego.apply"(%i, %j) {layout = #lego.layout<"OrderBy(Col(8, 8))">} : (index, index) -> index
    return %0 : index
  }

  func.func @host(%a: memref<64xf32> {lego.layout = #lego.layout<"OrderBy(Row(8, 8))">},
                  %b: memref<64xf32> {lego.layout = #lego.layout<"OrderBy(Row(8, 8))">}) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
      %i, %j = "lego.inv"(%tx) {layout = #lego.layout<"OrderBy(Row(8, 8))">} : (index) -> (index, index)
      %v = memref.load %a[%tx] : memref<64xf32>
      %to = func.call @transposed(%i, %j) : (index, index) -> index
      memref.store %v, %b[%to] : memref<64xf32>
      gpu.terminator
    }
    return
  }
}
