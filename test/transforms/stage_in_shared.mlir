// The step stage_in_shared: tiles with the attribute `shared` pass through shared memory.
// RUN: %legoc %s --schedule=%S/Inputs/stage_in_shared.mlir --emit=scheduled --keep %t2 -o %t2.out
// RUN: cat %t2/02-stage_in_shared.mlir | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %legoc %s --schedule=%S/Inputs/stage_in_shared.mlir --param buffers=1 --emit=scheduled \
// RUN:     --keep %t1 -o %t1.out
// RUN: cat %t1/02-stage_in_shared.mlir | FileCheck %s --check-prefixes=CHECK,ONE

#A = #lego.layout<"OrderBy(Row(32, 64)).TileBy([2, 4], [16, 16])">
#S = #lego.layout<"OrderBy(GenP([16, 16], swizzle(8, 2, 2)))">

// Two loads of a loop share their barrier; with several buffers it is the only one.
// CHECK-LABEL: func.func @add
func.func @add(%a: memref<32x64xf16>, %b: memref<32x64xf16>, %c: memref<32x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // TWO: %[[SB:.*]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(2), GenP([16, 16], swizzle(8, 2, 2)))">}
    // TWO: %[[SA:.*]] = "lego.alloc"()
    // ONE: %[[SB:.*]] = "lego.alloc"() {layout = #lego.layout<"OrderBy(GenP([16, 16], swizzle(8, 2, 2)))">}
    // ONE: %[[SA:.*]] = "lego.alloc"()
    // CHECK: scf.for %[[K:.*]] = %c0 to %c4
    scf.for %k = %c0 to %c4 step %c1 {
      // CHECK: %[[X:.*]] = "lego.load"(%arg0, %{{.*}}, %[[K]]) {{.*}}slice = array<i64: 2, 3>}
      // TWO: %[[SLOT:.*]] = arith.remui %[[K]]
      // TWO-NEXT: "lego.store"(%[[X]], %[[SA]], %[[SLOT]]) {{.*}}slice = array<i64: 1, 2>}
      // ONE-NEXT: "lego.store"(%[[X]], %[[SA]]) {{.*}}slice = array<i64: 0, 1>}
      // CHECK-NOT: gpu.barrier
      // CHECK: %[[Y:.*]] = "lego.load"(%arg1
      // CHECK: "lego.store"(%[[Y]], %[[SB]]
      // CHECK-NEXT: gpu.barrier
      // CHECK-NEXT: %[[X1:.*]] = "lego.load"(%[[SA]]
      // CHECK-NEXT: %[[Y1:.*]] = "lego.load"(%[[SB]]
      // CHECK-NEXT: arith.addf %[[X1]], %[[Y1]]
      // CHECK-NEXT: "lego.store"
      // ONE-NEXT: gpu.barrier
      // CHECK-NEXT: }
      %x = "lego.load"(%a, %bx, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<32x64xf16>, index, index) -> vector<16x16xf16>
      %y = "lego.load"(%b, %bx, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (memref<32x64xf16>, index, index) -> vector<16x16xf16>
      %z = arith.addf %x, %y : vector<16x16xf16>
      "lego.store"(%z, %c, %bx, %k) {layout = #A, slice = array<i64: 2, 3>}
          : (vector<16x16xf16>, memref<32x64xf16>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}

// A value that is used before the next load has a barrier of its own. Outside of a loop there is
// one buffer.
// CHECK-LABEL: func.func @one_by_one
func.func @one_by_one(%a: memref<32x64xf16>, %b: memref<32x64xf16>, %c: memref<32x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK-COUNT-2: "lego.alloc"() {layout = #lego.layout<"OrderBy(GenP(
    // CHECK: "lego.store"
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: "lego.load"
    // CHECK-NEXT: arith.negf
    // CHECK-NEXT: "lego.load"
    // CHECK-NEXT: "lego.store"
    // CHECK-NEXT: gpu.barrier
    %x = "lego.load"(%a, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
        : (memref<32x64xf16>, index, index) -> vector<16x16xf16>
    %n = arith.negf %x : vector<16x16xf16>
    %y = "lego.load"(%b, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
        : (memref<32x64xf16>, index, index) -> vector<16x16xf16>
    %z = arith.addf %n, %y : vector<16x16xf16>
    "lego.store"(%z, %c, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>}
        : (vector<16x16xf16>, memref<32x64xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

// A store goes through shared memory on its way out. In a loop a barrier parts it from the next
// time; a loop of copies that another one repeats has one behind it.
// CHECK-LABEL: func.func @persistent
func.func @persistent(%a: memref<32x64xf16>, %c: memref<32x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x16xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: scf.for
    scf.for %m = %c0 to %c2 step %c1 {
      // CHECK: %[[SUM:.*]] = scf.for
      // CHECK: scf.yield
      // CHECK-NEXT: }
      // CHECK-NEXT: gpu.barrier
      %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> vector<16x16xf16> {
        %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
            : (memref<32x64xf16>, index, index) -> vector<16x16xf16>
        %next = arith.addf %acc, %x : vector<16x16xf16>
        scf.yield %next : vector<16x16xf16>
      }
      // CHECK-NEXT: "lego.store"(%[[SUM]], %[[S:.*]]) {{.*}}slice = array<i64: 0, 1>}
      // CHECK-NEXT: gpu.barrier
      // CHECK-NEXT: %[[OUT:.*]] = "lego.load"(%[[S]])
      // CHECK-NEXT: "lego.store"(%[[OUT]], %arg1
      // CHECK-NOT: shared =
      // CHECK: gpu.barrier
      // CHECK-NEXT: }
      "lego.store"(%sum, %c, %m, %c0) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
          : (vector<16x16xf16>, memref<32x64xf16>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}
