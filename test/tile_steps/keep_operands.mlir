// The queries are loaded into registers in front of the loop; probabilities are there already, and keys
// and values stay in shared memory. An operand that takes more registers stays, too.
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/keep_operands.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/keep_operands.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: sed 's/= 16 : i64/= 15 : i64/' %S/Inputs/keep_operands.mlir > %t.mlir
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%t.mlir --emit=placed | FileCheck %s --check-prefix=FEWER
// RUN: sed 's/= 16 : i64/= -1 : i64/' %S/Inputs/keep_operands.mlir > %t.wrong.mlir
// RUN: not %legoc %S/Inputs/attention.mlir --schedule=%t.wrong.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK:      %[[SHARED:[^ ]+]] = "lego.convert"({{.*}}) : {{.*}} -> tensor<128x64xf16, #lego.shared<
// CHECK:      %[[Q:[^ ]+]] = "lego.convert"(%[[SHARED]]) : {{.*}} -> tensor<128x64xf16, #lego.layout<
// CHECK-NEXT: scf.for
// CHECK:      "lego.dot"(%[[Q]],

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error

// FEWER:      %[[SHARED:[^ ]+]] = "lego.convert"({{.*}}) : {{.*}} -> tensor<128x64xf16, #lego.shared<
// FEWER:      scf.for
// FEWER:      "lego.dot"(%[[SHARED]],

// WRONG:      error: keep_operands: operand_registers is -1
