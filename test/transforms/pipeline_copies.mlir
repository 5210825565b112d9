// The step pipeline_copies: copies three iterations ahead, through four buffers.
// RUN: %legoc %s --schedule=%S/Inputs/copy.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/05-pipeline_copies.mlir | FileCheck %s

#A = #lego.layout<"OrderBy(Row(32, 128)).TileBy([2, 8], [16, 16])">
#S = #lego.layout<"OrderBy(GenP([16, 16], swizzle(8, 2, 2)))">

// CHECK-LABEL: func.func @copy
func.func @copy(%a: memref<32x128xf16>, %b: memref<32x128xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: %[[S:.*]] = "lego.alloc"
    // The copies of the first three iterations, a group each, for sure.
    // CHECK-NOT: scf.if
    // CHECK: %[[FIRST:.*]] = "lego.load"(%arg0, %[[M:.*]], %c0)
    // CHECK: "lego.store"(%[[FIRST]], %[[S]]
    // CHECK-NEXT: nvvm.cp.async.commit.group
    // CHECK-COUNT-2: nvvm.cp.async.commit.group
    // CHECK-NOT: nvvm.cp.async.commit.group
    // CHECK: scf.for %[[K:.*]] = %c0 to %[[END:.*]] step
    // CHECK-NEXT: nvvm.cp.async.wait.group 2
    // CHECK-NEXT: gpu.barrier
    // CHECK-DAG: %[[THREE:.*]] = arith.constant 3
    // CHECK-DAG: %[[AHEAD:.*]] = arith.addi %[[K]], %[[THREE]]
    // CHECK-DAG: %[[THERE:.*]] = arith.cmpi slt, %[[AHEAD]], %[[END]]
    // CHECK: scf.if %[[THERE]] {
    // CHECK: %[[X:.*]] = "lego.load"(%arg0, %[[M]], %[[AHEAD]])
    // CHECK-DAG: %[[SLOT:.*]] = arith.remui %[[AHEAD]]
    // CHECK: "lego.store"(%[[X]], %[[S]], %[[SLOT]])
    // CHECK-NEXT: }
    // CHECK-NEXT: nvvm.cp.async.commit.group
    // CHECK-NOT: gpu.barrier
    // CHECK-NOT: "lego.load"(%arg0
    // CHECK-DAG: %[[NOW:.*]] = arith.remui %[[K]]
    // CHECK: %[[Y:.*]] = "lego.load"(%[[S]], %[[NOW]])
    // CHECK-NEXT: "lego.store"(%[[Y]], %arg1
    // CHECK-NEXT: }
    scf.for %k = %c0 to %c8 step %c1 {
      %x = "lego.load"(%a, %bx, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<32x128xf16>, index, index) -> vector<16x16xf16>
      "lego.store"(%x, %b, %bx, %k) {layout = #A, slice = array<i64: 2, 3>}
          : (vector<16x16xf16>, memref<32x128xf16>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}

// Of two iterations both are copied ahead, and none in the loop; groups are counted all the same.
// CHECK-LABEL: func.func @short
func.func @short(%a: memref<32x128xf16>, %b: memref<32x128xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: "lego.load"(%arg0, %{{.*}}, %c1)
    // CHECK: nvvm.cp.async.commit.group
    // CHECK-DAG: %[[SECOND:.*]] = arith.constant 3 : index
    // CHECK: "lego.load"(%arg0, %{{.*}}, %[[SECOND]])
    // CHECK: nvvm.cp.async.commit.group
    // CHECK-NOT: lego.load
    // CHECK: nvvm.cp.async.commit.group
    // CHECK: scf.for
    // CHECK-NOT: lego.load"(%arg0
    // CHECK: nvvm.cp.async.commit.group
    // CHECK: gpu.terminator
    scf.for %k = %c1 to %c5 step %c2 {
      %x = "lego.load"(%a, %bx, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<32x128xf16>, index, index) -> vector<16x16xf16>
      "lego.store"(%x, %b, %bx, %k) {layout = #A, slice = array<i64: 2, 3>}
          : (vector<16x16xf16>, memref<32x128xf16>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}
