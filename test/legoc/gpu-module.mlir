// Kernels that the user wrote as gpu.func, in modules of their own, and launches by name.
// The shared tile is read in the order of its memory: lego.inv of the anti-diagonals says where an
// element belongs.
// RUN: %legoc %s --run --device=sim | FileCheck %s
// RUN: %legoc %s --emit=nvvm | FileCheck %s --check-prefix=NVVM
// RUN: %legoc %s --emit=index | %legoc - --run --device=sim | FileCheck %s --check-prefix=AGAIN

// CHECK: kernel{{ +}}t{{ +}}grid 4×1×1{{ +}}block 256×1×1
// CHECK: tensor{{ +}}a{{ +}}f32 64×64{{ +}}random, seed 0
// CHECK: tensor{{ +}}b{{ +}}f32 64×64{{ +}}written
// CHECK: check{{ +}}equal to NumPy's transpose: b: all 4096 elements equal
// AGAIN: check{{ +}}equal to NumPy's transpose

// NVVM: gpu.launch_func @k::@t
// NVVM: gpu.launch_func @k::@t_0
// NVVM: gpu.module @k
// NVVM: llvm.func @t(
// NVVM: llvm.func @t_0(
// NVVM-NOT: gpu.module

#blocks = #lego.layout<"OrderBy(Row(2, 2))">
#steps  = #lego.layout<"OrderBy(Row(4, 256))">
#A      = #lego.layout<"OrderBy(Row(64, 64)).TileBy([2, 2], [32, 32])">
#tile   = #lego.layout<"OrderBy(GenP([32, 32], antidiagonal))">
!tile   = memref<?xf32, #gpu.address_space<workgroup>>

module attributes {gpu.container_module, lego.reference = "transpose"} {
  func.func @host(%a: memref<64x64xf32>, %b: memref<64x64xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @k::@t blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%a : memref<64x64xf32>, %b : memref<64x64xf32>)
    gpu.launch_func @other::@t blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%b : memref<64x64xf32>)
    return
  }

  gpu.module @k {
    gpu.func @t(%a: memref<64x64xf32>, %b: memref<64x64xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %tile = "lego.alloc"() {layout = #tile} : () -> !tile
      %bid = gpu.block_id x
      %tid = gpu.thread_id x
      %m, %n = "lego.inv"(%bid) {layout = #blocks} : (index) -> (index, index)
      scf.for %s = %c0 to %c4 step %c1 {
        %flat = "lego.apply"(%s, %tid) {layout = #steps} : (index, index) -> index
        %i, %j = "lego.inv"(%flat) {layout = #lego.layout<"OrderBy(Row(32, 32))">} : (index) -> (index, index)
        %v = "lego.load"(%a, %m, %n, %i, %j) {layout = #A}
            : (memref<64x64xf32>, index, index, index, index) -> f32
        "lego.store"(%v, %tile, %i, %j) {layout = #tile} : (f32, !tile, index, index) -> ()
      }
      gpu.barrier
      scf.for %s = %c0 to %c4 step %c1 {
        %flat = "lego.apply"(%s, %tid) {layout = #steps} : (index, index) -> index
        %v = memref.load %tile[%flat] : !tile
        %i, %j = "lego.inv"(%flat) {layout = #tile} : (index) -> (index, index)
        "lego.store"(%v, %b, %n, %m, %j, %i) {layout = #A}
            : (f32, memref<64x64xf32>, index, index, index, index) -> ()
      }
      gpu.return
    }
  }

  // Another kernel of the same name, which reads nothing and writes nothing.
  gpu.module @other {
    gpu.func @t(%b: memref<64x64xf32>) kernel {
      gpu.return
    }
  }
}
