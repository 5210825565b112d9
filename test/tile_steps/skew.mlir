// The second dot comes one iteration late: it multiplies what the loop carries, and the values of the
// iteration before. The first iteration's softmax is in front of the loop, its last dot behind.
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/skew.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/skew.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=%S/Inputs/skew.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=ONE

// CHECK:      %[[K:[^ ]+]] = "lego.make_ring"()
// CHECK-NEXT: %[[V:[^ ]+]] = "lego.make_ring"()
// CHECK:      "lego.wait"(%[[K]], %c0{{.*}})
// CHECK:      "lego.dot"
// CHECK:      %[[P0:[^ ]+]] = arith.truncf
// CHECK-NOT:  "lego.wait"(%[[V]]
// CHECK:      scf.for %[[I:[^ ]+]] = {{.*}} iter_args({{.*}}%[[P:[^ ]+]] = %[[P0]]
// CHECK:      "lego.wait"(%[[K]], %[[I]])
// CHECK:      "lego.dot"
// CHECK:      %[[BEFORE:[^ ]+]] = arith.subi %[[I]], %c1
// CHECK:      "lego.wait"(%[[V]], %[[BEFORE]])
// CHECK:      "lego.dot"(%[[P]],
// CHECK-NEXT: "lego.release"(%[[V]], %[[BEFORE]])
// CHECK:      math.exp
// CHECK:      scf.yield
// CHECK:      %[[LAST:[^ ]+]] = arith.subi %c4
// CHECK:      "lego.wait"(%[[V]], %[[LAST]])
// CHECK:      "lego.dot"
// CHECK:      arith.divf

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error

// ONE:        error: skew: no loop has two dots in its body
