// Neighbours in the order of programs run on the CTAs of a cluster, and load what they share once.
// Down, in groups of two rows, they share operand B:
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param cluster=2 --param raster_group=2 --param stages=3 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param cluster=2 --param raster_group=2 --check-each-step | FileCheck %s --check-prefix=STEPS
// Three beside each other share operand A, whose rows cannot be dealt to them:
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=3 --param cluster=3 --param raster_group=1 --emit=placed 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=4 --param cluster=2 --param raster_group=2 --emit=ptx | FileCheck %s --check-prefix=PTX
// Of 2 by 2, those of a row share operand A, and those of a column operand B:
// RUN: sed -e 's/three = arith.constant 3/three = arith.constant 4/' -e 's/192/256/; s/24576/32768/g' %S/Inputs/grid.mlir > %t.mlir
// RUN: %legoc %t.mlir --schedule=persistent --param ctas=4 --param cluster=4 --param cluster_rows=2 --emit=placed | FileCheck %s --check-prefix=SQUARE
// RUN: %legoc %t.mlir --schedule=persistent --param ctas=4 --param cluster=4 --param cluster_rows=2 --param store_stages=1 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %t.mlir --schedule=persistent --param ctas=4 --param cluster=4 --param cluster_rows=2 --emit=ptx | FileCheck %s --check-prefix=RANKS
// Two beside each other do not divide a row of three:
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param cluster=2 --param cluster_rows=1 --emit=placed 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=4 --param cluster=4 --emit=placed 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=3 --param cluster=2 --emit=placed 2>&1 | FileCheck %s --check-prefix=CTAS
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param cluster=2 --target=sm_89 --emit=placed 2>&1 | FileCheck %s --check-prefix=TARGET

// CHECK-DAG:  %[[RANK:[^ ]+]] = arith.remui %arg3, %c2
// CHECK-DAG:  %[[CLUSTER:[^ ]+]] = arith.divui %arg3, %c2
// CHECK:      scf.for %[[M:[^ ]+]] = %[[CLUSTER]] to %c3{{.*}} step %c1
// CHECK:      %[[FIRST:[^ ]+]] = arith.muli %[[M]], %c2
// CHECK-NEXT: %[[N:[^ ]+]] = arith.addi %[[FIRST]], %[[RANK]]
// CHECK-NEXT: "lego.inv"(%[[N]])
// CHECK:      "lego.copy_async"({{.*}}, %arg0, {{.*}}) {engine = "tma", layout = #lego.layout<"OrderBy(Row(128, 128))">, slice
// CHECK:      "lego.copy_async"({{.*}}, %arg1, {{.*}}) {engine = "tma", layout = #lego.layout<"OrderBy(Row(128, 192))">, multicast = array<i64: 3, 3>, slice
// CHECK:      {lego.cluster = 2 : i64, lego.filled, lego.own_programs

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// A release goes to both CTAs, and each copies half of the rows of B to both.
// PTX:        barrier.cluster.arrive
// PTX-NEXT:   barrier.cluster.wait
// PTX:        mapa.shared::cluster.u64
// PTX:        mbarrier.arrive.shared::cluster.b64
// PTX:        selp.b32 {{.*}}, 0, 32,
// PTX:        mov.b16 [[MASK:%rs[0-9]+]], 3;
// PTX:        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster {{.*}}, [[MASK]];
// PTX:        barrier.cluster.arrive
// PTX-NEXT:   barrier.cluster.wait
// PTX:        ret;

// THREE:      error: multicast: the 3 CTAs of a cluster load no tile in common
// THREE:      hint: an order of programs by which neighbours share an operand: {cluster_rows = 3 : i64}
// ROWS:       error: persistent: a grid of 2 x 3 programs is no whole clusters of 2 CTAs with 1 rows
// ROWS:       hint: --param cluster_rows=0
// SQUARE:     {layout = #lego.layout<"OrderBy(GenP([1, 2], row_groups(4)), Row(2, 2)).TileBy([2, 4])">
// SQUARE:     "lego.copy_async"({{.*}}, %arg0, {{.*}} multicast = array<i64: 3, 3, 12, 12>, slice
// SQUARE:     "lego.copy_async"({{.*}}, %arg1, {{.*}} multicast = array<i64: 5, 10, 5, 10>, slice
// A stage is filled by the two others that share an operand, and by its own CTA: three release it.
// RANKS:      mov.b32 [[COUNT:%r[0-9]+]], 3;
// RANKS:      mbarrier.init.shared.b64 [{{.*}}], [[COUNT]];
// RANKS:      selp.b32 {{.*}}, 11, 7,
// RANKS:      selp.b16 {{.*}}, 3, 12,
// RANKS:      selp.b16 {{.*}}, 5, 10,
// WHOLE:      error: persistent: 6 programs are no whole clusters of 4
// WHOLE:      hint: --param cluster=1
// CTAS:       error: persistent: 3 CTAs are no whole clusters of 2
// TARGET:     error: persistent: the target sm_89 has no clusters of CTAs
