// What does not depend on a loop is computed before it, and a loop's variable knows its range.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<(d0) -> (d0 * 512)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<(d0) -> (d0 * 64)>
// CHECK-DAG: #[[MAP2:.*]] = affine_map<(d0) -> (d0 * 4 + 3)>
// CHECK-DAG: #[[MAP3:.*]] = affine_map<(d0) -> (d0 * 4)>
// CHECK-DAG: #[[MAP4:.*]] = affine_map<(d0)[s0] -> (d0 + s0 * 64)>

// A sum is split: only the part that changes is inside.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[BUFFER:.*]]: memref<4096xf32>, %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[X]], %c63
// CHECK: scf.for %[[V1:.*]] = %c0 to %c8 step %c1 {
// CHECK-DAG: %[[V2:.*]] = affine.apply #[[MAP]](%[[V1]])
// CHECK-DAG: %[[V3:.*]] = arith.addi %[[V0]], %[[V2]]
// CHECK: scf.for %[[V4:.*]] = %c0 to %c8 step %c1 {
// CHECK-DAG: %[[V5:.*]] = affine.apply #[[MAP1]](%[[V4]])
// CHECK-DAG: %[[V6:.*]] = arith.addi %[[V3]], %[[V5]]
// CHECK: memref.store %cst, %[[BUFFER]][%[[V6]]] : memref<4096xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @sum(%buffer: memref<4096xf32>, %x: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %column = arith.andi %x, %c63 : index
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      "lego.store"(%zero, %buffer, %i, %j, %column) {layout = #lego.layout<"OrderBy(Row(8, 8, 64))">}
          : (f32, memref<4096xf32>, index, index, index) -> ()
    }
  }
  return
}

// So is a multiple of sizes that are not known.
// CHECK-LABEL: func.func @sizes_of_the_launch(
// CHECK-SAME: %[[BUFFER:.*]]: memref<?xf32>, %[[X:.*]]: index, %[[M:.*]]: index, %[[N:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.muli %[[M]], %[[N]]
// CHECK-DAG: %[[V1:.*]] = arith.muli %[[V0]], %[[X]]
// CHECK-DAG: %[[V2:.*]] = arith.addi %[[V1]], %c1
// CHECK: scf.for %[[V3:.*]] = %c0 to %[[M]] step %c1 {
// CHECK-DAG: %[[V4:.*]] = arith.muli %[[N]], %[[V3]]
// CHECK-DAG: %[[V5:.*]] = arith.addi %[[V2]], %[[V4]]
// CHECK: memref.store %cst, %[[BUFFER]][%[[V5]]] : memref<?xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @sizes_of_the_launch(%buffer: memref<?xf32>, %x: index, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %m step %c1 {
    "lego.store"(%zero, %buffer, %x, %i, %c1, %m, %n) {layout = #lego.layout<"OrderBy(Row(4, M, N))">}
        : (f32, memref<?xf32>, index, index, index, index, index) -> ()
  }
  return
}

// The range of the variable leaves no division: 0 <= 4*i + 3 < 32, and 8 divides j.
// CHECK-LABEL: func.func @range(
// CHECK-SAME: %[[BUFFER:.*]]: memref<256xf32>
// CHECK: scf.for %[[V0:.*]] = %c0 to %c8 step %c1 {
// CHECK-DAG: %[[V1:.*]] = affine.apply #[[MAP2]](%[[V0]])
// CHECK: scf.for %[[V2:.*]] = %c0 to %c64 step %c8 {
// CHECK-DAG: %[[V3:.*]] = affine.apply #[[MAP3]](%[[V2]])
// CHECK-DAG: %[[V4:.*]] = arith.addi %[[V1]], %[[V3]]
// CHECK: memref.store %cst, %[[BUFFER]][%[[V4]]] : memref<256xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @range(%buffer: memref<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c64 step %c8 {
      %0 = arith.muli %i, %c4 : index
      %1 = arith.addi %0, %c3 : index
      %a, %b = "lego.inv"(%1) {layout = #lego.layout<"OrderBy(Row(8, 32))">} : (index) -> (index, index)
      %c, %d = "lego.inv"(%j) {layout = #lego.layout<"OrderBy(Row(8, 8))">} : (index) -> (index, index)
      %e = arith.addi %a, %c : index
      %f = arith.addi %b, %d : index
      "lego.store"(%zero, %buffer, %e, %f) {layout = #lego.layout<"OrderBy(Row(8, 32))">}
          : (f32, memref<256xf32>, index, index) -> ()
    }
  }
  return
}

// A loop that may run below zero divides by flooring.
// CHECK-LABEL: func.func @negative(
// CHECK-SAME: %[[OUT:.*]]: memref<64xindex>
// CHECK: scf.for %[[V0:.*]] = %c-6 to %c6 step %c1 {
// CHECK-DAG: %[[V1:.*]] = arith.floordivsi %[[V0]], %c3
// CHECK-DAG: %[[V2:.*]] = arith.addi %[[V0]], %c6
// CHECK: memref.store %[[V1]], %[[OUT]][%[[V2]]] : memref<64xindex>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @negative(%out: memref<64xindex>) {
  %cm6 = arith.constant -6 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %cm6 to %c6 step %c1 {
    %a, %b = "lego.inv"(%i) {layout = #lego.layout<"OrderBy(Row(4, 3))">} : (index) -> (index, index)
    %0 = arith.addi %i, %c6 : index
    memref.store %a, %out[%0] : memref<64xindex>
  }
  return
}

// A division by what may be zero stays where its condition guards it.
// CHECK-LABEL: func.func @guarded(
// CHECK-SAME: %[[OUT:.*]]: memref<64xindex>, %[[X:.*]]: index, %[[D:.*]]: index
// CHECK: scf.for %[[V0:.*]] = %c0 to %c64 step %c1 {
// CHECK-DAG: %[[V1:.*]] = arith.cmpi ne, %[[D]], %c0
// CHECK: scf.if %[[V1]] {
// CHECK-DAG: %[[V2:.*]] = arith.floordivsi %[[X]], %[[D]]
// CHECK-DAG: %[[V3:.*]] = affine.apply #[[MAP4]](%[[V0]])[%[[V2]]]
// CHECK: memref.store %[[V3]], %[[OUT]][%[[V0]]] : memref<64xindex>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @guarded(%out: memref<64xindex>, %x: index, %d: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %some = arith.cmpi ne, %d, %c0 : index
    scf.if %some {
      %q = arith.floordivsi %x, %d : index
      %0 = "lego.apply"(%q, %i) {layout = #lego.layout<"OrderBy(Row(4, 64))">} : (index, index) -> index
      memref.store %0, %out[%i] : memref<64xindex>
    }
  }
  return
}
