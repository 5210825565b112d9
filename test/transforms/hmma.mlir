// The schedule `hmma`: GEMMs on tensor cores, step by step.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=hmma --emit=scheduled | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=hmma --param buffers=2 --param depth=1 --emit=scheduled | FileCheck %s --check-prefix=TWO
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=hmma --emit=ptx --target=sm_80 | FileCheck %s --check-prefix=PTX
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=hmma --emit=cubin --target=sm_80 -o %t.cubin
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=hmma --param buffers=3 --param depth=2 --emit=cubin --target=sm_89 -o %t.cubin
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=hmma --emit=scheduled --target=sm_89 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not %legoc %examples/transpose.mlir --schedule=hmma --emit=scheduled 2>&1 | FileCheck %s --check-prefix=NOTHING

// Three tiles are on their way before the loop, one an iteration in it.
// CHECK: gpu.launch {{.*}} dynamic_shared_memory_size %c131072_i32
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 2
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.ldmatrix
// CHECK: scf.for
// CHECK: nvvm.ldmatrix
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.mma.sync
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.mma.sync
// CHECK: nvvm.cp.async.wait.group 2
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
// CHECK-NOT: nvvm.ldmatrix
// CHECK: scf.yield
// CHECK: gpu.terminator

// TWO: dynamic_shared_memory_size %c65536_i32
// TWO: nvvm.cp.async.wait.group 0

// PTX: .target sm_80
// PTX-DAG: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16;
// PTX-DAG: cp.async.wait_group 2;
// PTX-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX-DAG: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32

// LARGE: matmul.mlir:{{[0-9:]+}} error: {{.*}}needs 131072 bytes of shared memory, 29696 more than the 101376 that a CTA on sm_89 may have

// NOTHING: error: stage_in_shared: none of the 4 operations has the attribute 'shared'
