// Each piece of the operands is loaded before the one in front of it is multiplied. With
// prefetch_fragments the last one is multiplied behind the loads of the next tile's first piece.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/slice_dots.mlir --target=sm_80 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/slice_dots.mlir --target=sm_80 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=cp_async --target=sm_80 --emit=index | FileCheck %s --check-prefix=ROTATED
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=cp_async --target=sm_80 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/slice_dots.mlir --target=sm_80 --param depth=24 --emit=placed 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=cp_async --target=sm_90a --emit=index | FileCheck %s --check-prefix=WGMMA
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=cp_async --target=sm_90a --check-each-step | FileCheck %s --check-prefix=STEPS90

// CHECK:      scf.for {{.*}} iter_args(%[[SUM:[^ ]+]] =
// CHECK:      %[[A:[^ ]+]] = "lego.wait"
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.wait"
// CHECK-NEXT: %[[A0:[^ ]+]] = "lego.extract_slice"(%[[A]]) {offsets = array<i64: 0, 0>} {{.*}} -> tensor<64x32xf16
// CHECK-NEXT: %[[B0:[^ ]+]] = "lego.extract_slice"(%[[B]]) {offsets = array<i64: 0, 0>} {{.*}} -> tensor<32x64xf16
// CHECK-NEXT: %[[A1:[^ ]+]] = "lego.extract_slice"(%[[A]]) {offsets = array<i64: 0, 32>}
// CHECK-NEXT: %[[B1:[^ ]+]] = "lego.extract_slice"(%[[B]]) {offsets = array<i64: 32, 0>}
// CHECK-COUNT-2: "lego.release"
// CHECK-NEXT: %[[D:[^ ]+]] = "lego.dot"(%[[A0]], %[[B0]], %[[SUM]])
// CHECK-NEXT: %[[E:[^ ]+]] = "lego.dot"(%[[A1]], %[[B1]], %[[D]])
// CHECK-NEXT: scf.yield %[[E]]

// The first group of copies in front of the loop is complete when the first piece is loaded.
// ROTATED-COUNT-3: nvvm.cp.async.commit.group
// ROTATED:      nvvm.cp.async.wait.group 2
// ROTATED-NEXT: gpu.barrier
// ROTATED:      nvvm.ldmatrix
// ROTATED:      scf.for
// ROTATED-NOT:  gpu.barrier
// ROTATED:      nvvm.cp.async.commit.group
// ROTATED:      nvvm.cp.async.wait.group 2
// ROTATED-NEXT: gpu.barrier
// ROTATED:      nvvm.ldmatrix
// ROTATED:      nvvm.mma.sync
// ROTATED-NOT:  nvvm.ldmatrix
// ROTATED:      scf.yield

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// DEPTH:      matmul.mlir:25:{{[0-9]+}}: error: slice_dots: dots of 24 along k do not divide one of 64 in instructions of 16
// DEPTH:      hint: --param depth=16

// wgmma reads shared memory itself, by another proxy than cp.async writes it.
// WGMMA:      scf.for
// WGMMA-NEXT: nvvm.cp.async.wait.group 2
// WGMMA-NEXT: nvvm.fence.proxy
// WGMMA-NEXT: gpu.barrier
// WGMMA:      wgmma.mma_async

// STEPS90:    lowering, run in the simulator (random): every element is the same
