// One host function with several launches: their kernels stand in one PTX, each with its own name
// and its own shared memory, and each launch gets its own.
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %s --run --device=sim | FileCheck %s
// RUN: %legoc %s --emit=bundle -o %t.lego
// RUN: %legoc %t.lego --run --device=sim | FileCheck %s

// PTX: .visible .entry halves_kernel(
// PTX: .shared .align 16 .b8 [[FIRST:.*]][1024];
// PTX: .visible .entry halves_kernel_0(
// PTX: .shared .align 16 .b8 [[SECOND:.*]][2048];

// CHECK: kernel{{ +}}halves_kernel{{ +}}grid 2×1×1{{ +}}block 256×1×1
// CHECK-NEXT: kernel{{ +}}halves_kernel_0{{ +}}grid 1×1×1{{ +}}block 512×1×1
// CHECK: check{{ +}}equal to NumPy's transpose: b: all 1024 elements equal

#A      = #lego.layout<"OrderBy(Row(32, 32)).TileBy([2, 2], [16, 16])">
#small  = #lego.layout<"OrderBy(GenP([16, 16], swizzle))">
#wide   = #lego.layout<"OrderBy(GenP([16, 32], reverse))">
#whole  = #lego.layout<"OrderBy(Row(32, 32))">
#lines  = #lego.layout<"OrderBy(Row(16, 32))">
#square = #lego.layout<"OrderBy(Row(16, 16))">

module attributes {lego.reference = "transpose"} {
  func.func @halves(%a: memref<32x32xf32>, %b: memref<32x32xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    // The upper half of the input, a tile a block.
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %tile = "lego.alloc"() {layout = #small} : () -> memref<?xf32, #gpu.address_space<workgroup>>
      %i, %j = "lego.inv"(%tx) {layout = #square} : (index) -> (index, index)
      %v = "lego.load"(%a, %c0, %bx, %i, %j) {layout = #A}
          : (memref<32x32xf32>, index, index, index, index) -> f32
      "lego.store"(%v, %tile, %i, %j) {layout = #small}
          : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> ()
      gpu.barrier
      %w = "lego.load"(%tile, %j, %i) {layout = #small}
          : (memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> f32
      "lego.store"(%w, %b, %bx, %c0, %i, %j) {layout = #A}
          : (f32, memref<32x32xf32>, index, index, index, index) -> ()
      gpu.terminator
    }
    // The lower half at once.
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c512, %sy = %c1, %sz = %c1) {
      %tile = "lego.alloc"() {layout = #wide} : () -> memref<?xf32, #gpu.address_space<workgroup>>
      %i, %j = "lego.inv"(%tx) {layout = #lines} : (index) -> (index, index)
      %row = arith.addi %i, %c16 : index
      %v = "lego.load"(%a, %row, %j) {layout = #whole} : (memref<32x32xf32>, index, index) -> f32
      "lego.store"(%v, %tile, %i, %j) {layout = #wide}
          : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> ()
      gpu.barrier
      %w = "lego.load"(%tile, %i, %j) {layout = #wide}
          : (memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> f32
      "lego.store"(%w, %b, %j, %row) {layout = #whole} : (f32, memref<32x32xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
