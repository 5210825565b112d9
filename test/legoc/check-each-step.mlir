// Reductions ignore elements past the end of a row; each step leaves what the kernel computes.
// RUN: %legoc %s --check-each-step | FileCheck %s
// RUN: %legoc %s --emit=placed | FileCheck %s --check-prefix=PLACED

// CHECK: fill_invalid: every element is the same
// CHECK: assign_layouts: every element is the same
// CHECK: lowering, run in the simulator (late)

// The load fills what the maximum ignores; what the sum ignores is selected.
// PLACED: "lego.load"
// PLACED-SAME: other = 0xFF800000 : f32
// PLACED: "lego.reduce"
// PLACED-SAME: kind = "max"
// PLACED: %[[VALID:.*]] = "lego.in_range"
// PLACED-SAME: size = 200
// PLACED: arith.select %[[VALID]]
// PLACED: "lego.reduce"
// PLACED-SAME: kind = "add"
// PLACED-NOT: "lego.restrict"
// PLACED: "lego.store"
// PLACED: lego.filled

#X = #lego.layout<"OrderBy(Row(4, 200))">
!tile = tensor<1x256xf32>
!row = tensor<1x1xf32>

func.func @softmax(%x: memref<800xf32> {lego.layout = #X}, %y: memref<800xf32> {lego.layout = #X}) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%i, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %v = "lego.load"(%x, %i, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<800xf32>, index, index) -> !tile
    %m = "lego.reduce"(%v) {kind = "max", dim = 1 : i64} : (!tile) -> !row
    %mb = "lego.broadcast"(%m) : (!row) -> !tile
    %d = arith.subf %v, %mb : !tile
    %e = math.exp2 %d : !tile
    %s = "lego.reduce"(%e) {kind = "add", dim = 1 : i64} : (!tile) -> !row
    %sb = "lego.broadcast"(%s) : (!row) -> !tile
    %p = arith.divf %e, %sb : !tile
    "lego.store"(%p, %y, %i, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (!tile, memref<800xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
