// TMA copies what it can on a target that has it, and cp.async the rest.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --target=sm_80 --emit=placed | FileCheck %s --check-prefix=AMPERE
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=pipelined --target=sm_80 --emit=index 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --target=sm_80 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=persistent --param l2_promotion=64 --emit=index | FileCheck %s --check-prefix=PROMOTED
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=persistent --param l2_promotion=32 --emit=index 2>&1 | FileCheck %s --check-prefix=PROMOTION

// CHECK-COUNT-2: "lego.copy_async"({{.*}}) {engine = "tma"
// CHECK-NOT:     engine = "plain"

// AMPERE-COUNT-2: "lego.copy_async"({{.*}}) {engine = "cp.async"
// AMPERE-NOT:     engine = "tma"

// ERROR:      error: sm_80 has no mbarriers that a thread can wait at
// ERROR:      hint: --target=sm_90a, or a schedule without split_roles, such as cp_async

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// PROMOTED-COUNT-2: "lego.tensor_map"({{.*}}l2_promotion = 64 : i64

// PROMOTION:  error: choose_copy_engines: l2_promotion is 32
// PROMOTION:  hint: l2_promotion is one of 0, 64, 128, 256
