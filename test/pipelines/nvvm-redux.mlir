// A reduction over a warp is one instruction from sm_80 on; before, there is none, and that is told.
// RUN: %legoc %s --emit=ptx --target=sm_80 | FileCheck %s
// RUN: not %legoc %s --emit=ptx --target=sm_75 2> %t.err
// RUN: FileCheck %s --check-prefix=OLD < %t.err

// CHECK: redux.sync.add.s32
// OLD: nvvm-redux.mlir:{{.*}}error: {{.*}}gpu.subgroup_reduce

gpu.module @kernels {
  gpu.func @sum(%a: memref<32xi32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %a[%t] : memref<32xi32>
    %s = gpu.subgroup_reduce add %v uniform : (i32) -> i32
    memref.store %s, %a[%t] : memref<32xi32>
    gpu.return
  }
}
