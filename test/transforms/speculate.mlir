// Exponentials of eight registers begin before the vote, with the base of the iteration before. The
// branch computes them again with its own.
// RUN: %legoc %S/../tile_steps/Inputs/lazy.mlir --schedule=%S/Inputs/speculate.mlir --emit=scheduled | FileCheck %s
// RUN: %legoc %S/../tile_steps/Inputs/lazy.mlir --schedule=%S/Inputs/speculate.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: sed 's/speculated = 8/speculated = -8/' %S/Inputs/speculate.mlir > %t.mlir
// RUN: not %legoc %S/../tile_steps/Inputs/lazy.mlir --schedule=%t.mlir --emit=scheduled 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK:      scf.for
// CHECK:      %[[E0:[^ ]+]] = math.exp2 {{.*}} : vector<4xf32>
// CHECK:      %[[E1:[^ ]+]] = math.exp2 {{.*}} : vector<4xf32>
// CHECK-NOT:  math.exp2
// CHECK:      %[[ANY:[^ ]+]] = nvvm.vote.sync any
// CHECK-NEXT: scf.if %[[ANY]] -> (vector<2xf32>, vector<2xf32>, vector<2xf32>, vector<4xf32>, vector<4xf32>)
// CHECK:        %[[N0:[^ ]+]] = math.exp2 {{.*}} : vector<4xf32>
// CHECK:        %[[N1:[^ ]+]] = math.exp2 {{.*}} : vector<4xf32>
// CHECK-NEXT:   scf.yield {{.*}}, %[[N0]], %[[N1]] :
// CHECK-NEXT: } else {
// CHECK-NEXT:   scf.yield {{.*}}, %[[E0]], %[[E1]] :

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (random): the largest error

// WRONG:      error: speculate: speculated is -8
