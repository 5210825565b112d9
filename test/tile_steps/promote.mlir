// Tensor cores add up the products of a few iterations; threads add these sums.
// RUN: rm -rf %t
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param promote=5 --emit=placed --keep %t -o %t.out
// RUN: cat %t/*-promote.mlir | FileCheck %s
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param ctas=4 --param promote=1 --param store_stages=2 --param store_parts=4 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param ctas=2 --param promote=1 --param store_stages=2 --param store_parts=4 --emit=placed | FileCheck %s --check-prefix=PARTS
// RUN: rm -rf %t.rest %t.open
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param promote=2 --emit=placed --keep %t.rest -o %t.out
// RUN: cat %t.rest/*-promote.mlir | FileCheck %s --check-prefix=REST
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=2 --param promote=2 --emit=placed --keep %t.open -o %t.out
// RUN: cat %t.open/*-promote.mlir | FileCheck %s --check-prefix=OPEN
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param ctas=4 --param split_k=2 --param promote=2 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: not %legoc %S/Inputs/attention.mlir --schedule=persistent --param promote=4 --emit=placed 2>&1 | FileCheck %s --check-prefix=CHAINED

// CHECK:      %[[SUM:[^ ]+]] = scf.for %[[J:[^ ]+]] = %c0{{.*}} to %c1{{.*}} step %c1{{.*}} iter_args(%[[TOTAL:[^ ]+]] = %
// CHECK:      %[[ZERO:[^ ]+]] = arith.constant dense<0.0
// CHECK:      %[[PART:[^ ]+]] = scf.for %[[K:[^ ]+]] = %c0{{.*}} to %c5{{.*}} iter_args(%[[C:[^ ]+]] = %[[ZERO]])
// CHECK:      %[[FIRST:[^ ]+]] = arith.muli %[[J]], %c5
// CHECK-NEXT: %[[I:[^ ]+]] = arith.addi %[[FIRST]], %[[K]]
// CHECK:      %[[D:[^ ]+]] = "lego.dot"({{.*}}, %[[C]])
// CHECK-NEXT: scf.yield %[[D]]
// CHECK:      %[[NEXT:[^ ]+]] = arith.addf %[[TOTAL]], %[[PART]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK:      arith.truncf %[[SUM]]
// CHECK:      lego.reassociated

// STEPS:      the schedule: the largest error
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// A tile's parts are put into the ring while the next tile's sums are made.
// PARTS:      scf.for %{{[^ ]+}} = {{.*}} iter_args(%[[X:[^ ]+]] = %
// PARTS:      scf.for
// PARTS:      "lego.dot_async"
// PARTS:      scf.if
// PARTS:      "lego.extract_part"(%[[X]],
// PARTS:      "lego.dot_wait"({{.*}}) {pending = 0
// PARTS:      arith.addf

// Of 5 iterations the last sum has one.
// REST:       scf.for %[[J:[^ ]+]] = %c0{{.*}} to %c3
// REST:       %[[BEFORE:[^ ]+]] = arith.muli %[[J]], %c2
// REST-NEXT:  %[[LEFT:[^ ]+]] = arith.subi %c5{{.*}}, %[[BEFORE]]
// REST-NEXT:  %[[COUNT:[^ ]+]] = arith.minsi %c2{{.*}}, %[[LEFT]]
// REST-NEXT:  scf.for %{{[^ ]+}} = %c0{{.*}} to %[[COUNT]]

// A slice of them has 3 or 2.
// OPEN:       %[[TRIPS:[^ ]+]] = arith.ceildivsi
// OPEN:       %[[SUMS:[^ ]+]] = arith.ceildivsi %[[TRIPS]], %c2
// OPEN:       scf.for %{{[^ ]+}} = %c0{{.*}} to %[[SUMS]]
// OPEN:       %[[LEFT:[^ ]+]] = arith.subi %[[TRIPS]],
// OPEN-NEXT:  %[[MOST:[^ ]+]] = arith.minsi %c2{{.*}}, %[[LEFT]]
// OPEN-NEXT:  %[[COUNT:[^ ]+]] = arith.maxsi %[[MOST]], %c1
// OPEN-NEXT:  scf.for %{{[^ ]+}} = %c0{{.*}} to %[[COUNT]]

// CHAINED:    error: promote: no loop has dots that only add to what it carries in f32
