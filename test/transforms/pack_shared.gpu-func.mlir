// A kernel that is a gpu.func: its threads are those it says it knows, its launches get the size.
// RUN: sed -e 's/"gpu.launch"/"gpu.func"/' %S/Inputs/copy.mlir > %t.schedule.mlir
// RUN: %legoc %s --schedule=%t.schedule.mlir --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=%t.schedule.mlir --run --device=sim | FileCheck %s --check-prefix=SIM

// CHECK: gpu.dynamic_shared_memory
// CHECK: gpu.launch_func @kernels::@copy {{.*}} dynamic_shared_memory_size %{{.*}} args(
// SIM: dynamic shared memory 8192 bytes
// SIM: check{{ +}}equal

#A = #lego.layout<"OrderBy(Row(32, 128)).TileBy([1, 4], [32, 32])">
#S = #lego.layout<"OrderBy(GenP([32, 32], swizzle(8, 2, 4)))">
module attributes {gpu.container_module, lego.reference = "copy"} {
  gpu.module @kernels {
    gpu.func @copy(%a: memref<32x128xf16>, %b: memref<32x128xf16>) kernel
        attributes {known_block_size = array<i32: 32, 2, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      scf.for %k = %c0 to %c4 step %c1 {
        %x = "lego.load"(%a, %c0, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #S}
            : (memref<32x128xf16>, index, index) -> vector<32x32xf16>
        "lego.store"(%x, %b, %c0, %k) {layout = #A, slice = array<i64: 2, 3>}
            : (vector<32x32xf16>, memref<32x128xf16>, index, index) -> ()
      }
      gpu.return
    }
  }
  func.func @main(%a: memref<32x128xf16>, %b: memref<32x128xf16>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c32, %c2, %c1)
        args(%a : memref<32x128xf16>, %b : memref<32x128xf16>)
    return
  }
}
