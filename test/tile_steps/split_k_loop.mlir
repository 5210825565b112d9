// Programs along z compute slices of K of one tile, and the last one to arrive adds them up and stores it.
// RUN: rm -rf %t
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=5 --emit=placed --keep %t -o %t.out
// RUN: cat %t/*-split_k_loop.mlir | FileCheck %s
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=5 --param ctas=4 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=5 --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: rm -rf %t.rest
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=3 --param ctas=18 --param cluster=2 --param cluster_rows=2 --emit=placed --keep %t.rest -o %t.out
// RUN: cat %t.rest/*-split_k_loop.mlir | FileCheck %s --check-prefix=REST
// RUN: cat %t.rest/*-multicast.mlir | FileCheck %s --check-prefix=CLUSTER
// RUN: rm -rf %t.any
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=5 --param in_order=0 --param ctas=4 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=5 --param in_order=0 --emit=placed --keep %t.any -o %t.out
// RUN: cat %t.any/*-split_k_loop.mlir | FileCheck %s --check-prefix=ANY
// RUN: not %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=6 --emit=placed 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: sed 's/gz = %one/gz = ~two/' %S/Inputs/deep_grid.mlir | tr '~' '%' > %t.z.mlir
// RUN: not %legoc %t.z.mlir --schedule=persistent --param split_k=5 --emit=placed 2>&1 | FileCheck %s --check-prefix=DEEP
// RUN: not %legoc %S/Inputs/attention.mlir --schedule=persistent --param split_k=2 --emit=placed 2>&1 | FileCheck %s --check-prefix=CHAINED
// RUN: not %legoc %S/Inputs/deep_grid.mlir --schedule=persistent --param split_k=0 --emit=placed 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK:      %[[SUMS:[^ ]+]] = gpu.alloc () : memref<122880xf32>
// CHECK:      %[[ARRIVALS:[^ ]+]] = gpu.alloc () {lego.zeroed} : memref<6xi32>
// CHECK:      gpu.launch blocks(%[[X:[^ ]+]], %[[Y:[^ ]+]], %[[Z:[^ ]+]]) in (%{{.*}} = %c3{{.*}}, %{{.*}} = %c2{{.*}}, %{{.*}} = %c5
// CHECK:      %[[PART:[^ ]+]] = scf.for %[[J:[^ ]+]] = %c0{{.*}} to %c1
// CHECK:      %[[FIRST:[^ ]+]] = arith.muli %[[Z]], %c1
// CHECK-NEXT: %[[I:[^ ]+]] = arith.addi %[[FIRST]], %[[J]]
// CHECK:      "lego.dot"
// A thread's elements lie four by four: [slice, y, x], rows of warps, quads of columns, lanes, four elements.
// CHECK:      "lego.store"(%[[PART]], %[[SUMS]], %[[Z]], %[[Y]], %[[X]], {{.*}}GroupBy([5, 2, 3, 64, 64])">, slice = array<i64: 3, 4>}
// CHECK:      %[[BEFORE:[^ ]+]] = "lego.atomic"(%c1_i32{{.*}}, %[[ARRIVALS]], %[[Y]], %[[X]]) {kind = "add", layout = #lego.layout<"OrderBy(Row(2, 3))">, ordered}
// CHECK:      %[[LAST:[^ ]+]] = arith.cmpi eq, %[[BEFORE]], %c4_i32
// CHECK:      scf.if %[[LAST]] {
// CHECK:      %[[TOTAL:[^ ]+]] = scf.for %[[S:[^ ]+]] = %c0{{.*}} to %c5
// CHECK:      %[[NUMBER:[^ ]+]] = arith.addi %[[S]], %c0
// CHECK:      %[[LOADED:[^ ]+]] = "lego.load"(%[[SUMS]], %[[NUMBER]], %[[Y]], %[[X]],
// CHECK:      arith.addf %{{[^ ]+}}, %[[LOADED]]
// CHECK:      "lego.atomic"(%c0_i32{{.*}}, %[[ARRIVALS]], %[[Y]], %[[X]]) {kind = "exchange"
// CHECK:      %[[SHORT:[^ ]+]] = arith.truncf %[[TOTAL]]
// CHECK:      %[[ROWS:[^ ]+]] = "lego.convert"(%[[SHORT]])
// CHECK:      "lego.store"(%[[ROWS]], %arg2,

// STEPS:      the schedule: the largest error
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// PTX:        st.global.v4.b32
// PTX:        bar.sync 1, 128;
// PTX-NOT:    fence
// PTX:        atom.acq_rel.gpu.global.add.u32
// PTX-NOT:    fence
// PTX:        bar.sync 1, 128;
// PTX:        ld.global.v4.b32

// In the order of arrivals: one place for each tile, to which all add, and which holds zeros again.
// ANY:        %[[SUMS:[^ ]+]] = gpu.alloc () {lego.zeroed} : memref<24576xf32>
// ANY:        gpu.launch blocks(%[[X:[^ ]+]], %[[Y:[^ ]+]], %[[Z:[^ ]+]]) in
// ANY:        %[[PART:[^ ]+]] = scf.for
// ANY:        "lego.store"(%[[PART]], %[[SUMS]], %c0{{[^,]*}}, %[[Y]], %[[X]], {{.*}}kind = "add", {{.*}}GroupBy([1, 2, 3, 64, 64])">
// ANY:        "lego.atomic"(%c1_i32{{.*}}) {kind = "add", {{.*}}, ordered}
// ANY:        scf.if
// ANY:        %[[TOTAL:[^ ]+]] = "lego.load"(%[[SUMS]], %c0{{[^,]*}}, %[[Y]], %[[X]],
// ANY:        "lego.store"(%cst{{.*}}, %[[SUMS]],
// ANY:        "lego.atomic"(%c0_i32{{.*}}) {kind = "exchange"
// ANY:        arith.truncf %[[TOTAL]]

// Slices have 2, 2 and 1 of 5 iterations.
// REST:       %[[LEFT:[^ ]+]] = arith.subi %c2{{.*}}, %[[Z:[^ ]+]] : index
// REST:       %[[AHEAD:[^ ]+]] = arith.maxsi %[[LEFT]], %c0
// REST:       %[[MORE:[^ ]+]] = arith.minsi %[[AHEAD]], %c1
// REST:       %[[COUNT:[^ ]+]] = arith.addi %c1{{.*}}, %[[MORE]]
// REST:       scf.for %[[J:[^ ]+]] = %c0{{.*}} to %[[COUNT]]
// REST:       %[[WHOLE:[^ ]+]] = arith.muli %[[Z]], %c1
// REST-NEXT:  %[[EARLIER:[^ ]+]] = arith.minsi %[[Z]], %c2
// REST-NEXT:  %[[FIRST:[^ ]+]] = arith.addi %[[WHOLE]], %[[EARLIER]]
// REST-NEXT:  arith.addi %[[FIRST]], %[[J]]

// Neighbours in a column, with the same slice of K, load operand B together.
// CLUSTER:    "lego.copy_async"({{.*}}, %arg1, {{.*}}multicast = array<i64: 3, 3>
// CLUSTER-NOT: multicast

// MANY:       error: split_k_loop: the loop has 5 iterations, which are no 6 slices
// MANY:       hint: --param split_k=5
// DEEP:       error: split_k_loop: the grid is 3 x 2 x 2, and the programs that share a tile are along z
// CHAINED:    error: split_k_loop: the kernel's body has 0 loops whose dots only add to what they carry in f32 or i32
// NONE:       error: split_k_loop: split_k is 0
// NONE:       hint: --param split_k=1
