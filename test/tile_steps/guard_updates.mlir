// What a condition selects, and products with factors that are else 1, are in branches that a vote
// decides. It votes on single scores, so that the rows' maxima are found in the branch.
// RUN: %legoc %S/Inputs/lazy.mlir --schedule=%S/Inputs/guard_updates.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/lazy.mlir --schedule=%S/Inputs/guard_updates.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/lazy.mlir --schedule=%S/Inputs/guard_updates.mlir --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %S/Inputs/attention.mlir --schedule=%S/Inputs/guard_updates.mlir --emit=placed | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/cmpf ogt, %here, %most/cmpf ogt, %here, %low/' -e 's/^ *%grown/%low = arith.subf %most, %unit : tensor<128x1xf32> %grown/' %S/Inputs/lazy.mlir > %t
// RUN: %legoc %t --schedule=%S/Inputs/guard_updates.mlir --emit=placed | FileCheck %s --check-prefix=BOUND
// RUN: %legoc %t --schedule=%S/Inputs/guard_updates.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: sed -e 's/cmpf ogt, %here, %most/cmpf ogt, %high, %most/' -e 's/^ *%grown/%high = arith.addf %here, %unit : tensor<128x1xf32> %grown/' %S/Inputs/lazy.mlir > %t.high
// RUN: %legoc %t.high --schedule=%S/Inputs/guard_updates.mlir --emit=placed | FileCheck %s --check-prefix=HIGH
// RUN: %legoc %t.high --schedule=%S/Inputs/guard_updates.mlir --check-each-step | FileCheck %s --check-prefix=STEPS

// CHECK:      scf.for {{.*}} iter_args(%[[MOST:[^ ]+]] = {{.*}}, %[[BEFORE:[^ ]+]] = {{.*}}, %[[TOTAL:[^ ]+]] = {{.*}}, %[[SUMS:[^ ]+]] = {{.*}})
// CHECK:      %[[SCORES:[^ ]+]] = arith.mulf
// CHECK-NOT:  "lego.reduce"
// CHECK:      %[[WIDE:[^ ]+]] = "lego.broadcast"(%[[MOST]])
// CHECK-NEXT: %[[ABOVE:[^ ]+]] = arith.cmpf ogt, %[[SCORES]], %[[WIDE]]
// CHECK-NEXT: %[[ANY:[^ ]+]] = "lego.vote"(%[[ABOVE]])
// CHECK-NEXT: %[[NEW:[^: ]+]]:3 = scf.if %[[ANY]]
// CHECK:        "lego.reduce"(%[[SCORES]])
// CHECK:        math.exp2
// CHECK:      } else {
// CHECK-NEXT:   scf.yield {{.*}}%[[MOST]]
// CHECK:      } {lego.divergent}
// CHECK:      math.exp2
// CHECK:      %[[KEPT:[^ ]+]] = scf.if %[[ANY]]
// CHECK-NEXT:   "lego.broadcast"(%[[NEW]]#
// CHECK-NEXT:   arith.mulf %[[SUMS]]
// CHECK-NEXT:   scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT:   scf.yield %[[SUMS]]
// CHECK:      "lego.dot"({{.*}}, %[[KEPT]])
// CHECK:      scf.if %[[ANY]]
// CHECK-NEXT:   arith.mulf %[[TOTAL]]

// What scores are compared with is computed in front of the vote.
// BOUND:      scf.for {{.*}} iter_args(%[[MOST:[^ ]+]] =
// BOUND:      %[[LOW:[^ ]+]] = arith.subf %[[MOST]],
// BOUND:      "lego.broadcast"(%[[LOW]])
// BOUND:      "lego.vote"
// BOUND:      scf.if
// BOUND:        "lego.reduce"
// BOUND:        arith.cmpf ogt, {{.*}}, %[[LOW]]

// If what is computed of the maximum is compared, the vote is on rows, and all of it is in front of the vote.
// HIGH:       %[[PEAK:[^ ]+]] = "lego.reduce"
// HIGH:       %[[SUM:[^ ]+]] = arith.addf %[[PEAK]],
// HIGH-NEXT:  %[[ABOVE:[^ ]+]] = arith.cmpf ogt, %[[SUM]],
// HIGH-NEXT:  %[[ANY:[^ ]+]] = "lego.vote"(%[[ABOVE]])
// HIGH-NEXT:  scf.if %[[ANY]]

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error

// PTX:        max.s32 [[A:%r[0-9]+]], {{.*}}; max.s32 [[A]], [[A]],
// PTX:        vote.sync.any.pred

// NONE:       scf.for
// NONE-NOT:   "lego.vote"
// NONE:       "lego.store"
