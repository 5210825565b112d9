// Tiles that do not divide the tensor, all the way: the grid covers it, the kernel stays inside.
// RUN: %legoc %s --run --device=sim | FileCheck %s
// RUN: sed -e s/100x70/96x64/ -e s/70x100/64x96/ %s > %t.divided.mlir
// RUN: %legoc %t.divided.mlir --set M=96 --set N=64 --emit=index | FileCheck %s --check-prefix=DIVIDED
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: sed -e s/ceildiv/max/g %s > %t.mlir
// RUN: not %legoc %t.mlir 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: kernel{{ +}}transpose_kernel{{ +}}grid 12×1×1{{ +}}block 256×1×1
// CHECK: check{{ +}}equal to NumPy's transpose: b: all 7000 elements equal

// DIVIDED: gpu.launch
// DIVIDED-SAME: = %c6,
// DIVIDED-NOT: scf.if

// PTX: .entry transpose_kernel
// PTX: setp

// WRONG: error: OrderBy(Row(100, 70)) has 7000 elements, TileBy([100, 70], [32, 32]) has
// WRONG: hint: to cover [100, 70] by these tiles, the outermost level is [4, 3]

#a = #lego.layout<"OrderBy(Row(M, N)).TileBy([ceildiv(M, T), ceildiv(N, T)], [T, T])">
#b = #lego.layout<"OrderBy(Row(N, M)).TileBy([ceildiv(N, T), ceildiv(M, T)], [T, T])">
#blocks = #lego.layout<"OrderBy(Row(ceildiv(M, T), ceildiv(N, T)))">
#threads = #lego.layout<"OrderBy(Row(8, T))">
#row = #lego.layout<"OrderBy(Row(T/8, 8))">
module attributes {lego.sizes = {M = 100, N = 70, T = 32}, lego.reference = "transpose"} {
  func.func @transpose(%a: memref<100x70xf32> {lego.layout = #a}, %b: memref<70x100xf32> {lego.layout = #b}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %grid = "lego.size"() {layout = #blocks} : () -> index
    %block = "lego.size"() {layout = #threads} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %block, %sy = %c1, %sz = %c1) {
      %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
      %r, %j = "lego.inv"(%tx) {layout = #threads} : (index) -> (index, index)
      scf.for %s = %c0 to %c4 step %c1 {
        %i = "lego.apply"(%s, %r) {layout = #row} : (index, index) -> index
        %v = "lego.load"(%a, %m, %n, %i, %j) {layout = #a}
            : (memref<100x70xf32>, index, index, index, index) -> f32
        "lego.store"(%v, %b, %n, %m, %j, %i) {layout = #b}
            : (f32, memref<70x100xf32>, index, index, index, index) -> ()
      }
      gpu.terminator
    }
    return
  }
}
