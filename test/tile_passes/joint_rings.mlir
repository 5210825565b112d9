// The rings of operands that are waited for and released together have one pair of barriers a stage, which
// expects the bytes of both; keys and values, which attention needs at different times, have their own.
// RUN: %legoc %S/../tile_steps/Inputs/matmul.mlir --schedule=pipelined --param stages=2 --emit=ptx | FileCheck %s
// RUN: %legoc %S/../tile_steps/Inputs/attention.mlir --schedule=attention --param stages=2 --emit=ptx | FileCheck %s --check-prefix=APART

// CHECK-COUNT-4: mbarrier.init
// CHECK-NOT:  mbarrier.init
// CHECK:      mbarrier.try_wait
// CHECK-NOT:  mbarrier.try_wait
// CHECK:      wgmma.mma_async
// CHECK:      mov.b32 [[BYTES:%r[0-9]+]], 16384;
// CHECK:      mbarrier.arrive.expect_tx.shared.b64 {{.*}}, [[BYTES]];
// CHECK-NOT:  mbarrier.arrive
// CHECK-COUNT-2: cp.async.bulk.tensor
// CHECK:      ret;

// APART-COUNT-8: mbarrier.init
// APART-NOT:  mbarrier.init
// APART-COUNT-2: mbarrier.arrive.expect_tx
