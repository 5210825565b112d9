// Two CTAs run the programs of the grid, in groups of rows. The ring runs on from tile to tile.
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param raster_group=2 --param stages=3 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=4 --param raster_group=2 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param raster_group=2 --emit=placed | FileCheck %s --check-prefix=EACH
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/persistent_order.mlir --emit=placed | FileCheck %s --check-prefix=ORDER
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/persistent_order.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/triangle.mlir --schedule=%S/Inputs/persistent_balance.mlir --emit=placed | FileCheck %s --check-prefix=BALANCE
// RUN: %legoc %S/Inputs/triangle.mlir --schedule=%S/Inputs/persistent_balance.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/persistent_balance.mlir --emit=placed | FileCheck %s --check-prefix=EQUAL
// RUN: sed -e '/three = arith.constant/d' -e 's/^func.func @matmul(/&%%three: index, /' %S/Inputs/triangle.mlir > %t.open
// RUN: sed -e 's/, order = .*>}/}/' %S/Inputs/persistent_balance.mlir > %t.balance
// RUN: %legoc %t.open --schedule=%t.balance --emit=placed | FileCheck %s --check-prefix=PAIRS
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/persistent_wrong_order.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/persistent_late.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param raster_group=0 --emit=placed 2>&1 | FileCheck %s --check-prefix=GROUP

// CHECK:      gpu.launch blocks(%[[B:[^ ]+]], {{.*}} in (%{{[^ ]+}} = %c2{{[^,]*}}, %{{[^ ]+}} = %c1{{[^,]*}}, %{{[^ ]+}} = %c1
// CHECK:      %[[COUNT:[^ ]+]] = arith.constant 6 : index
// CHECK:      %[[R:[^ ]+]] = "lego.make_ring"
// CHECK:      "lego.role"
// CHECK:      scf.for %[[N:[^ ]+]] = %[[B]] to %[[COUNT]] step %[[STEP:[^ ]+]]
// CHECK:      %[[AT:[^ ]+]]:2 = "lego.inv"(%[[N]]) {layout = #lego.layout<"OrderBy(GenP([2, 3], row_groups(2)))">
// CHECK-DAG:  arith.muli %[[AT]]#0, %c64
// CHECK-DAG:  arith.muli %[[AT]]#1, %c64
// CHECK-DAG:  %[[FROM:[^ ]+]] = arith.subi %[[N]], %[[B]]
// CHECK:      arith.divui %[[FROM]], %[[STEP]]
// CHECK:      "lego.wait"(%[[R]],
// CHECK:      "lego.store"
// CHECK:      name = "consumer"
// CHECK:      scf.for %[[M:[^ ]+]] = %[[B]] to %[[COUNT]]
// CHECK:      %[[TO:[^ ]+]]:2 = "lego.inv"(%[[M]])
// CHECK:      scf.for
// CHECK:      "lego.acquire"(%[[R]],
// CHECK:      name = "producer"

// The first three of six programs take three iterations' time, the others two: four CTAs have five or less.
// BALANCE:      %[[FROM:[^ ]+]] = "lego.table"(%[[B:[^ ]+]]) {values = array<i64: 0, 2, 3, 4>}
// BALANCE-NEXT: %[[TO:[^ ]+]] = "lego.table"(%[[B]]) {values = array<i64: 2, 3, 4, 6>}
// BALANCE-NEXT: %[[TRIPS:[^ ]+]] = arith.subi %[[TO]], %[[FROM]]
// BALANCE:      scf.for %[[K:[^ ]+]] = %c0{{.*}} to %[[TRIPS]]
// BALANCE:      %[[AT:[^ ]+]] = arith.addi %[[FROM]], %[[K]]
// BALANCE:      "lego.table"(%[[N:[^ ]+]]) {values = array<i64: 2, 0, 1, 0, 2, 1>}
// BALANCE-NEXT: "lego.table"(%[[N]]) {values = array<i64: 1, 0, 1, 1, 0, 0>}

// Where all take equally long there is no table.
// EQUAL:        %[[MORE:[^ ]+]] = arith.select
// EQUAL:        %[[TIMES:[^ ]+]] = arith.addi %c1{{[^ ]*}}, %[[MORE]]
// EQUAL:        scf.for %[[K:[^ ]+]] = %c0{{.*}} to %[[TIMES]]
// EQUAL:        arith.muli %[[K]], %c4
// EQUAL:        "lego.inv"

// If only the launch knows how many programs there are, a CTA runs two neighbours of every 8, and what is left over
// in pairs, too, or one each if there are at most as many as CTAs.
// PAIRS:      %[[COUNT:[^ ]+]] = arith.muli %{{[^ ]+}}, %c1
// PAIRS:      arith.minsi %[[COUNT]], %c4
// PAIRS:      gpu.launch blocks(%[[OWN:[^ ]+]],
// PAIRS:      %[[REST:[^ ]+]] = arith.remui %[[COUNT]], %c8
// PAIRS-NEXT: %[[FULL:[^ ]+]] = arith.divui %[[COUNT]], %c8
// PAIRS-NEXT: %[[BEFORE:[^ ]+]] = arith.muli %[[FULL]], %[[TWO:[^ ]+]] : index
// PAIRS-NEXT: %[[PAIR:[^ ]+]] = arith.muli %[[OWN]], %[[TWO]]
// PAIRS:      %[[FEW:[^ ]+]] = arith.cmpi ult, %[[REST]], %c5
// PAIRS-NEXT: %[[HAS:[^ ]+]] = arith.cmpi ult, %[[OWN]], %[[REST]]
// PAIRS:      %[[ALONE:[^ ]+]] = arith.select %[[HAS]],
// PAIRS-NEXT: %[[PAST:[^ ]+]] = arith.subi %[[REST]], %[[PAIR]]
// PAIRS:      %[[SOME:[^ ]+]] = arith.maxsi %[[PAST]],
// PAIRS-NEXT: %[[BOTH:[^ ]+]] = arith.minsi %[[SOME]], %[[TWO]]
// PAIRS-NEXT: %[[LEFT:[^ ]+]] = arith.select %[[FEW]], %[[ALONE]], %[[BOTH]]
// PAIRS-NEXT: %[[TRIPS:[^ ]+]] = arith.addi %[[BEFORE]], %[[LEFT]]
// PAIRS:      scf.for %[[K:[^ ]+]] = %c0{{[^ ]*}} to %[[TRIPS]]
// PAIRS-NEXT: %[[ROUND:[^ ]+]] = arith.divui %[[K]], %[[TWO]]
// PAIRS-NEXT: %[[START:[^ ]+]] = arith.muli %[[ROUND]], %c8
// PAIRS-NEXT: %[[WHICH:[^ ]+]] = arith.remui %[[K]], %[[TWO]]
// PAIRS-NEXT: %[[NEXT:[^ ]+]] = arith.addi %[[PAIR]], %[[WHICH]]
// PAIRS:      %[[LAST:[^ ]+]] = arith.cmpi ult, %[[BEFORE]],
// PAIRS-NEXT: %[[IS:[^ ]+]] = arith.andi %[[FEW]], %[[LAST]]
// PAIRS-NEXT: %[[PLACE:[^ ]+]] = arith.select %[[IS]], %[[OWN]], %[[NEXT]]
// PAIRS:      arith.addi %[[START]], %[[PLACE]]

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late): every element is the same
// STEPS:      lowering, run in the simulator (early): every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// A CTA for each program: no loop, but the order.
// EACH:       arith.constant 6 : index
// EACH:       gpu.launch blocks(%[[B:[^ ]+]],
// EACH:       "lego.inv"(%[[B]])

// The last program first.
// ORDER:      scf.for %[[N:[^ ]+]] =
// ORDER-NEXT: "lego.inv"(%[[N]]) {layout = #lego.layout<"OrderBy(GenP([2, 3], reverse))">

// WRONG:      persistent_wrong_order.mlir:5:5: error: persistent: the order 'OrderBy(Row(3, 2))' is not of [2, 3]
// LATE:       error: persistent: a kernel with a 'lego.make_ring' cannot become persistent any more
// LATE:       hint: transform_lego.persistent comes before
// GROUP:      error: persistent: raster_group is 0
// GROUP:      hint: --param raster_group=8
