// A kernel that is a gpu.func: its launches get the size.
// RUN: sed -e 's/"gpu.launch"/"gpu.func"/' %S/Inputs/pack_shared.mlir > %t.schedule.mlir
// RUN: %legoc %s --schedule=%t.schedule.mlir --emit=scheduled | FileCheck %s
// RUN: %legoc %s --schedule=%t.schedule.mlir --run --device=sim | FileCheck %s --check-prefix=SIM

// CHECK: gpu.dynamic_shared_memory
// CHECK: gpu.launch_func @kernels::@copy {{.*}} dynamic_shared_memory_size %{{.*}} args(
// SIM: dynamic shared memory 128 bytes
// SIM: check{{ +}}equal

#A = #lego.layout<"OrderBy(Row(64))">
module attributes {gpu.container_module, lego.reference = "copy"} {
  gpu.module @kernels {
    gpu.func @copy(%a: memref<64xf16>, %b: memref<64xf16>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %t = gpu.thread_id x
      %s = "lego.alloc"() {layout = #A} : () -> memref<?xf16, #gpu.address_space<workgroup>>
      %x = "lego.load"(%a, %t) {layout = #A} : (memref<64xf16>, index) -> f16
      "lego.store"(%x, %s, %t) {layout = #A}
          : (f16, memref<?xf16, #gpu.address_space<workgroup>>, index) -> ()
      gpu.barrier
      %y = "lego.load"(%s, %t) {layout = #A}
          : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> f16
      "lego.store"(%y, %b, %t) {layout = #A} : (f16, memref<64xf16>, index) -> ()
      gpu.return
    }
  }
  func.func @main(%a: memref<64xf16>, %b: memref<64xf16>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%a : memref<64xf16>, %b : memref<64xf16>)
    return
  }
}
