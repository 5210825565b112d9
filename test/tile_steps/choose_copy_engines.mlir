// TMA copies what it can: it needs a target that has it.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --target=sm_80 --emit=placed | FileCheck %s --check-prefix=OLD
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --target=sm_80 --emit=index 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/choose_copy_engines.mlir --check-each-step | FileCheck %s --check-prefix=STEPS

// CHECK-COUNT-2: "lego.copy_async"({{.*}}) {engine = "tma"
// CHECK-NOT:     engine = "plain"

// OLD-COUNT-2: "lego.copy_async"({{.*}}) {engine = "plain"
// OLD-NOT:     engine = "tma"

// ERROR:      error: sm_80 has no mbarriers that a thread can wait at

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error
