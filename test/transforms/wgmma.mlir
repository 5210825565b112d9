// The schedule `wgmma`: GEMMs on Hopper, step by step.
// RUN: %legoc %S/Inputs/hopper.mlir --schedule=wgmma --emit=ptx | FileCheck %s
// RUN: %legoc %S/Inputs/hopper.mlir --schedule=wgmma --param producer_registers=0 --param consumer_registers=0 --param pdl=0 --emit=ptx | FileCheck %s --check-prefix=PLAIN
// RUN: %legoc %S/Inputs/hopper.mlir --schedule=wgmma --param min_shared_bytes=231000 --emit=scheduled | FileCheck %s --check-prefix=LEAST
// RUN: not %legoc %S/Inputs/hopper.mlir --schedule=wgmma --param stages=6 --emit=scheduled 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not %legoc %S/Inputs/hopper.mlir --schedule=wgmma --target=sm_80 --emit=scheduled 2>&1 | FileCheck %s --check-prefix=AMPERE
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=wgmma --emit=scheduled 2>&1 | FileCheck %s --check-prefix=SWIZZLE

// One warpgroup fetches: it waits for what runs before, then for room, then copies.
// CHECK: .maxntid 384
// CHECK: griddepcontrol.launch_dependents;
// CHECK: setmaxnreg.dec.sync.aligned.u32 40;
// CHECK: griddepcontrol.wait;
// CHECK: mbarrier.try_wait.parity
// CHECK: mbarrier.arrive.expect_tx
// CHECK-COUNT-5: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [
// CHECK-NOT: cp.async.bulk.tensor.2d.shared::cluster
// Consumer warpgroups: 64 rows each, four instructions an iteration, one iteration ahead of the
// stage that is released.
// CHECK: setmaxnreg.inc.sync.aligned.u32 232;
// CHECK: mbarrier.try_wait.parity
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16
// CHECK-NOT: wgmma.mma_async
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK-NOT: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK-NOT: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: wgmma.mma_async
// Each stores its fragment, in four chunks.
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// CHECK: cp.async.bulk.wait_group.read 0;

// PLAIN-NOT: setmaxnreg
// PLAIN-NOT: griddepcontrol
// PLAIN: wgmma.mma_async
// PLAIN-NOT: setmaxnreg

// LEAST: dynamic_shared_memory_size %c231000_i32

// LARGE: hopper.mlir:{{[0-9:]+}} error: pack_shared: the kernel needs 327856 bytes of shared memory, 95408 more than the 232448 that a CTA on sm_90a may have

// AMPERE: wgmma.mlir:{{[0-9:]+}} error: specialize_warps: {{.*}} need sm_90a, the target is sm_80
// AMPERE: hint: {{.*}}--schedule=cp_async

// SWIZZLE: matmul.mlir:{{[0-9:]+}} error: copies_to_tma: TMA cannot write the tile [64, 128]
