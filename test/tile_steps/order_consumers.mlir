// The two warpgroups of the consumer begin their dots in turns, by named barriers.
// RUN: %legoc %S/Inputs/attention.mlir --schedule=attention --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/attention.mlir --schedule=attention --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %S/Inputs/attention.mlir --schedule=attention --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/attention.mlir --schedule=attention --param turns=0 --emit=placed | FileCheck %s --check-prefix=FREE
// RUN: not %legoc %S/Inputs/attention.mlir --schedule=attention --param turns=2 --emit=placed 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK:      "lego.role"
// CHECK:      scf.for
// CHECK:      "lego.turn_begin"() {groups = 2 : i64}
// CHECK-NEXT: "lego.dot_async"
// CHECK:      "lego.dot_async"
// CHECK-NEXT: "lego.turn_end"() {groups = 2 : i64}
// CHECK-NEXT: "lego.dot_wait"
// CHECK:      name = "consumer"

// The last warpgroup lets the first one begin.
// INDEX:      nvvm.barrier.arrive
// INDEX:      scf.for
// INDEX:      nvvm.barrier id = {{.*}} number_of_threads = %c256_i32
// INDEX:      wgmma.mma_async
// INDEX:      nvvm.barrier.arrive

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error

// FREE-NOT:   lego.turn
// FREE:       "lego.dot_async"

// WRONG:      error: order_consumers: turns is 2
