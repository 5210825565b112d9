// A reduction over a warp is one instruction from sm_80 on; before, there is none, and it is shuffles.
// RUN: %legoc %s --emit=ptx --target=sm_80 | FileCheck %s
// RUN: %legoc %s --emit=ptx --target=sm_75 | FileCheck %s --check-prefix=OLD

// CHECK-NOT: shfl
// CHECK: redux.sync.add.s32
// OLD-NOT: redux
// OLD: shfl.sync.bfly.b32 {{.*}}, 1, 31, -1
// OLD: shfl.sync.bfly.b32 {{.*}}, 2, 31, -1
// OLD: shfl.sync.bfly.b32 {{.*}}, 4, 31, -1
// OLD: shfl.sync.bfly.b32 {{.*}}, 8, 31, -1
// OLD: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1

gpu.module @kernels {
  gpu.func @sum(%a: memref<32xi32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %a[%t] : memref<32xi32>
    %s = gpu.subgroup_reduce add %v uniform : (i32) -> i32
    memref.store %s, %a[%t] : memref<32xi32>
    gpu.return
  }
}
