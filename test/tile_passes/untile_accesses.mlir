// Tiles of tensors that are seen in tiles are tiles of the tensors, with sizes that are numbers or not.
// RUN: %legoc %s --emit=placed | FileCheck %s

#A = #lego.layout<"OrderBy(Row(192, 100)).TileBy([3, 2], [64, 64])">
#B = #lego.layout<"OrderBy(Row(M, 128)).TileBy([M/64, 4], [64, 32])">
#C = #lego.layout<"OrderBy(Row(192, 128)).TileBy([3, 4], [8, 2], [8, 16])">

// Columns from 100 on are invalid, as before.
// CHECK:      gpu.launch
// CHECK:      %[[ROW:.*]] = arith.muli %arg3, %c64
// CHECK:      %[[X:.*]] = "lego.load"(%arg0, %[[ROW]], %{{[^,]+}}) {layout = #lego.layout<"OrderBy(Row(192, 100))">, slice = array<i64: 0, 1>}
// The rows stay a value of the layout.
// CHECK:      "lego.load"(%arg1, %{{[^,]+}}, %{{[^,]+}}, %[[M:[^,]+]]) {layout = #lego.layout<"OrderBy(Row(M{64}, 128))">, slice = array<i64: 0, 1>}
// Three levels: tile * 64 + group * 8.
// CHECK:      %[[OUTER:.*]] = arith.muli %arg3, %c8
// CHECK:      %[[BOTH:.*]] = arith.addi %[[OUTER]], %c3
// CHECK:      arith.muli %[[BOTH]], %c8
// CHECK:      "lego.load"(%arg2, {{.*}}layout = #lego.layout<"OrderBy(Row(192, 128))">
// A tile that does not begin where an innermost one does ends where that does.
// CHECK:      "lego.load"(%arg2, {{.*}}TileBy([3, 4], [8, 2], [8, 16])">
func.func @main(%a: memref<19200xf32> {lego.layout = #A, lego.alignment = 16 : i64},
                %b: memref<?xf32> {lego.layout = #B, lego.alignment = 16 : i64},
                %c: memref<24576xf32> {lego.layout = #C, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %M = arith.constant 192 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %x = "lego.load"(%a, %bx, %c1, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>}
        : (memref<19200xf32>, index, index, index, index) -> tensor<64x64xf32>
    %y = "lego.load"(%b, %bx, %c1, %c0, %c0, %M) {layout = #B, slice = array<i64: 2, 3>}
        : (memref<?xf32>, index, index, index, index, index) -> tensor<64x32xf32>
    %z = "lego.load"(%c, %bx, %c1, %c3, %c0, %c0, %c0) {layout = #C, slice = array<i64: 4, 5>}
        : (memref<24576xf32>, index, index, index, index, index, index) -> tensor<8x16xf32>
    %w = "lego.load"(%c, %bx, %c1, %c3, %c0, %c4, %c0) {layout = #C, slice = array<i64: 4, 5>}
        : (memref<24576xf32>, index, index, index, index, index, index) -> tensor<8x16xf32>
    "lego.store"(%x, %a, %bx, %c1, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>}
        : (tensor<64x64xf32>, memref<19200xf32>, index, index, index, index) -> ()
    "lego.store"(%y, %b, %bx, %c1, %c0, %c0, %M) {layout = #B, slice = array<i64: 2, 3>}
        : (tensor<64x32xf32>, memref<?xf32>, index, index, index, index, index) -> ()
    %s = arith.addf %z, %w : tensor<8x16xf32>
    "lego.store"(%s, %c, %bx, %c1, %c3, %c0, %c0, %c0) {layout = #C, slice = array<i64: 4, 5>}
        : (tensor<8x16xf32>, memref<24576xf32>, index, index, index, index, index, index) -> ()
    gpu.terminator
  }
  return
}
