// The schedule `cp_async`: GEMMs on tensor cores, whose tiles are copied by cp.async.
// RUN: %legoc %S/Inputs/placed_matmul.mlir --schedule=cp_async --emit=scheduled | FileCheck %s
// RUN: %legoc %S/Inputs/placed_matmul.mlir --schedule=cp_async --param stages=2 --emit=scheduled | FileCheck %s --check-prefix=TWO
// RUN: %legoc %S/Inputs/placed_matmul.mlir --schedule=cp_async --emit=ptx --target=sm_80 | FileCheck %s --check-prefix=PTX
// RUN: %legoc %S/Inputs/placed_matmul.mlir --schedule=cp_async --emit=cubin --target=sm_80 -o %t.cubin
// RUN: %legoc %S/Inputs/placed_matmul.mlir --schedule=cp_async --param stages=3 --emit=cubin --target=sm_89 -o %t.cubin
// RUN: not %legoc %S/Inputs/placed_matmul.mlir --schedule=cp_async --emit=scheduled --target=sm_89 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not %legoc %examples/transpose.mlir --schedule=cp_async --emit=scheduled 2>&1 | FileCheck %s --check-prefix=NOTHING

// Three tiles are on their way before the loop, one an iteration in it.
// CHECK: gpu.launch {{.*}} memref<131072xi8, #gpu.address_space<workgroup>>
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

// TWO: memref<98304xi8, #gpu.address_space<workgroup>>
// TWO: nvvm.cp.async.wait.group 0

// PTX: .target sm_80
// PTX-DAG: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16;
// PTX-DAG: cp.async.wait_group 2;
// PTX-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX-DAG: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32

// LARGE: placed_matmul.mlir:{{[0-9:]+}} error: {{.*}}needs 131072 bytes of shared memory, 29696 more than the 101376 that a CTA on sm_89 may have

// NOTHING: error: pipeline_loop: no load in the body of this loop goes to a dot
