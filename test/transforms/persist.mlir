// The step persist: persistent CTAs compute several tiles in a loop.
// RUN: %legoc %s --schedule=%S/Inputs/persist.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/02-persist.mlir | FileCheck %s

#blocks = #lego.layout<"OrderBy(Col(4, 5))">
#A = #lego.layout<"OrderBy(Row(4, 5, 32))">

// The block's number becomes that of a tile: every use of it but the loop's own start.
// CHECK-LABEL: func.func @copy
func.func @copy(%a: memref<640xf32>, %b: memref<640xf32>) {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %tiles = "lego.size"() {layout = #blocks} : () -> index
  // CHECK-DAG: %[[ALL:.*]] = arith.constant 20 : index
  // CHECK-DAG: %[[GRID:.*]] = arith.constant 4 : index
  // CHECK: gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[GRID]], %{{.*}} = %c1, %{{.*}} = %c1)
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK-DAG: %[[STEP:.*]] = arith.constant 4 : index
    // CHECK: scf.for %[[T:.*]] = %[[B]] to %[[ALL]] step %[[STEP]] {
    // CHECK-NEXT: "lego.inv"(%[[T]])
    // CHECK: "lego.load"
    // CHECK: arith.addi %[[T]]
    // CHECK: "lego.store"
    // CHECK-NEXT: }
    // CHECK-NEXT: gpu.terminator
    %i, %j = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
    %x = "lego.load"(%a, %i, %j, %tx) {layout = #A}
        : (memref<640xf32>, index, index, index) -> f32
    %number = arith.addi %bx, %c1 : index
    %n = arith.index_cast %number : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.addf %x, %f : f32
    "lego.store"(%y, %b, %i, %j, %tx) {layout = #A}
        : (f32, memref<640xf32>, index, index, index) -> ()
    gpu.terminator
  }
  return
}

// As many blocks as there may be, or fewer: nothing changes.
// CHECK-LABEL: func.func @few
func.func @few(%a: memref<128xf32>, %b: memref<128xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 32 : index
  // CHECK-NOT: scf.for
  // CHECK: gpu.terminator
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %x = "lego.load"(%a, %bx, %tx) {layout = #lego.layout<"OrderBy(Row(4, 32))">}
        : (memref<128xf32>, index, index) -> f32
    "lego.store"(%x, %b, %bx, %tx) {layout = #lego.layout<"OrderBy(Row(4, 32))">}
        : (f32, memref<128xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}

// Whatever asks for a block's number or their count gets the tile's and theirs, and shared memory is
// not written again before all have read it.
// CHECK-LABEL: func.func @reverse
func.func @reverse(%a: memref<256xf32>, %b: memref<256xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c31 = arith.constant 31 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: gpu.launch
    // CHECK: scf.for %[[T:.*]] = %{{.*}} to %[[ALL:c8[_0-9]*]] step
    // CHECK: arith.subi %[[ALL]], %[[T]]
    // CHECK: arith.subi %[[ALL]], %[[T]]
    // CHECK: gpu.barrier
    // CHECK: "lego.store"
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: }
    %s = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(32))">}
        : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %number = gpu.block_id x
    %count = gpu.grid_dim x
    %more = arith.subi %count, %number : index
    %again = arith.subi %gx, %bx : index
    %from = arith.subi %more, %c1 : index
    %to = arith.subi %count, %again : index
    %x = "lego.load"(%a, %from, %tx) {layout = #lego.layout<"OrderBy(Row(8, 32))">}
        : (memref<256xf32>, index, index) -> f32
    "lego.store"(%x, %s, %tx) {layout = #lego.layout<"OrderBy(Row(32))">}
        : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index) -> ()
    gpu.barrier
    %other = arith.subi %c31, %tx : index
    %y = "lego.load"(%s, %other) {layout = #lego.layout<"OrderBy(Row(32))">}
        : (memref<?xf32, #gpu.address_space<workgroup>>, index) -> f32
    "lego.store"(%y, %b, %to, %tx) {layout = #lego.layout<"OrderBy(Row(8, 32))">}
        : (f32, memref<256xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
