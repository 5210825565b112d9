// Rows that begin anywhere are stored from sectors on, out of shared memory.
// RUN: %legoc %s | FileCheck %s

#X = #lego.layout<"OrderBy(Row(4, 128))">
#Odd = #lego.layout<"OrderBy(Row(3, 131))">
#Whole = #lego.layout<"OrderBy(Row(3, 144))">
#Narrow = #lego.layout<"OrderBy(Row(4, 64))">
#OddNarrow = #lego.layout<"OrderBy(Row(3, 67))">

// Each warp has half of the columns; then it has every other row, of which lanes have neighbouring
// elements.
#halves = #lego.layout<"OrderBy(Row(2, 32, 8)).OrderBy(RegP([4, 2, 32, 2], [1, 2, 0, 3])).GroupBy([4, 128])">
#rows = #lego.layout<"OrderBy(Row(2, 32, 8)).OrderBy(RegP([2, 2, 4, 32], [1, 3, 0, 2])).GroupBy([4, 128])">
#narrow_halves = #lego.layout<"OrderBy(Row(2, 32, 4)).OrderBy(RegP([4, 2, 32, 1], [1, 2, 0, 3])).GroupBy([4, 64])">
#narrow_rows = #lego.layout<"OrderBy(Row(2, 32, 4)).OrderBy(RegP([2, 2, 2, 32], [1, 3, 0, 2])).GroupBy([4, 64])">

// A row begins so many elements behind a sector of 16, and the lane's elements so many before its
// own. A row in shared memory has 16 bytes more than the tile's. Five accesses take the place of
// four; lanes without an element load any, and rows past the end of the buffer have none.
// CHECK-LABEL: func.func @odd(
// CHECK-SAME:    %[[Y:[a-z0-9]+]]: memref<393xf16>
// CHECK:       gpu.launch
// CHECK:       memref.view {{.*}} to memref<544xf16, #gpu.address_space<workgroup>>
// CHECK:       %[[WARP:.*]] = arith.shrui %[[T:.*]], %c5 : index
// CHECK:       %[[LANE:.*]] = arith.andi %[[T]], %c31 : index
// CHECK:       %[[START:.*]] = arith.muli %[[WARP]], %c131 : index
// CHECK:       %[[MOVED:.*]] = arith.andi %[[START]], %c15
// CHECK:       %[[FIRST:.*]] = arith.subi %[[LANE]], %[[MOVED]] : index
// CHECK:       %[[LAST:.*]] = arith.addi %[[FIRST]], %c128 : index
// CHECK:       gpu.barrier
// CHECK:       arith.maxsi {{.*}}, %c0 : index
// CHECK:       arith.minui {{.*}}, %c127 : index
// CHECK:       arith.cmpi ult, %[[FIRST]], %{{.*}} : index
// CHECK-COUNT-4: memref.store {{.*}}, %[[Y]]
// CHECK:       %[[INSIDE:.*]] = arith.cmpi ult, %[[LAST]], %{{.*}} : index
// CHECK:       scf.if %[[INSIDE]] {
// CHECK-NEXT:    memref.store {{.*}}, %[[Y]]
// CHECK:       %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %c3 : index
// CHECK-NEXT:  arith.select %[[EXISTS]], %c128, %c0 : index
// CHECK-COUNT-5: memref.store {{.*}}, %[[Y]]
// CHECK-NOT:   memref.store
func.func @odd(%x: memref<512xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                 %y: memref<393xf16> {lego.layout = #Odd}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<512xf16>, index, index) -> tensor<4x128xf16, #halves>
    %w = "lego.convert"(%v) : (tensor<4x128xf16, #halves>) -> tensor<4x128xf16, #rows>
    "lego.store"(%w, %y, %c0, %c0) {layout = #Odd, slice = array<i64: 0, 1>}
        : (tensor<4x128xf16, #rows>, memref<393xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

// Rows of whole sectors stay where they are: four accesses each.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME:    %[[Y:[a-z0-9]+]]: memref<432xf16>
// CHECK-NOT:   arith.maxsi
// CHECK-COUNT-8: memref.store {{.*}}, %[[Y]]
// CHECK-NOT:   memref.store
func.func @whole(%x: memref<512xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                 %y: memref<432xf16> {lego.layout = #Whole}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<512xf16>, index, index) -> tensor<4x128xf16, #halves>
    %w = "lego.convert"(%v) : (tensor<4x128xf16, #halves>) -> tensor<4x128xf16, #rows>
    "lego.store"(%w, %y, %c0, %c0) {layout = #Whole, slice = array<i64: 0, 1>}
        : (tensor<4x128xf16, #rows>, memref<432xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

// So do rows of two accesses: a third one would take longer than the parts of sectors between two.
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME:    %[[Y:[a-z0-9]+]]: memref<201xf16>
// CHECK-NOT:   arith.maxsi
// CHECK-COUNT-4: memref.store {{.*}}, %[[Y]]
// CHECK-NOT:   memref.store
func.func @narrow(%x: memref<256xf16> {lego.layout = #Narrow, lego.alignment = 16 : i64},
                 %y: memref<201xf16> {lego.layout = #OddNarrow}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0, %c0) {layout = #Narrow, slice = array<i64: 0, 1>}
        : (memref<256xf16>, index, index) -> tensor<4x64xf16, #narrow_halves>
    %w = "lego.convert"(%v) : (tensor<4x64xf16, #narrow_halves>) -> tensor<4x64xf16, #narrow_rows>
    "lego.store"(%w, %y, %c0, %c0) {layout = #OddNarrow, slice = array<i64: 0, 1>}
        : (tensor<4x64xf16, #narrow_rows>, memref<201xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}
