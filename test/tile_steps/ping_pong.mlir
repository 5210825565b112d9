// Two warpgroups compute whole tiles in turns: one begins its dots when the other has begun all of its own,
// and puts its tile into the ring behind the other one's.
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=1 --param overlap_epilogue=0 --param ping_pong=1 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param cluster=2 --param raster_group=2 --param store_stages=1 --param overlap_epilogue=0 --param ping_pong=1 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=1 --param stages=3 --param store_stages=2 --param store_parts=4 --param overlap_epilogue=0 --param ping_pong=1 --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=1 --param ping_pong=1 --emit=placed 2>&1 | FileCheck %s --check-prefix=OVERLAP
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=1 --param overlap_epilogue=0 --param ping_pong=1 --emit=index | FileCheck %s --check-prefix=THREADS
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=0 --param store_stages=1 --param overlap_epilogue=0 --param ping_pong=1 --emit=placed 2>&1 | FileCheck %s --check-prefix=OVERLAP

// CHECK:      in (%arg12 = %c384
// CHECK:      "lego.role"() ({
// CHECK:      scf.for
// CHECK:      "lego.turn_begin"() {groups = 2 : i64} :
// CHECK-NEXT: "lego.wait"
// CHECK:      %[[SUM:[^ ]+]] = scf.for
// CHECK:      scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: "lego.turn_end"() {groups = 2 : i64} :
// CHECK-NEXT: "lego.dot_wait"(%[[SUM]]) {pending = 0 : i64}
// CHECK:      "lego.turn_begin"() {groups = 2 : i64, order = 1 : i64}
// CHECK-NEXT: "lego.acquire"
// CHECK-NEXT: "lego.put"
// CHECK-NEXT: "lego.commit"
// CHECK-NEXT: "lego.turn_end"() {groups = 2 : i64, order = 1 : i64}
// CHECK:      {first_warp = 0 : i64, name = "consumer", teams = 2 : i64, warps = 8 : i64}
// CHECK:      {first_warp = 8 : i64, name = "producer", warps = 3 : i64}
// CHECK:      {first_warp = 11 : i64, name = "storer", warps = 1 : i64}

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late): every element is the same
// STEPS:      lowering, run in the simulator (early): every element is the same
// STEPS:      lowering, run in the simulator (random): every element is the same

// The second warpgroup lets the first one begin, once for each order of turns. Each has every other tile.
// INDEX:      nvvm.barrier.arrive id = %c2_i32
// INDEX:      nvvm.barrier.arrive id = %c4_i32
// INDEX:      scf.for %{{.*}} to %c6 step %c2 iter_args
// INDEX:      nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
// INDEX:      wgmma.mma_async
// INDEX:      nvvm.barrier.arrive
// INDEX:      nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
// INDEX-COUNT-4: nvvm.stmatrix
// INDEX:      nvvm.barrier.arrive

// OVERLAP:    error: ping_pong: the consumer has no loop over tiles that are computed one by one

// Each warpgroup converts through memory of its own, and has a barrier of its own.
// THREADS:    %[[TEAM:[^ ]+]] = nvvm.shfl.sync {{.*}} {lego.team}
// THREADS:    %[[NUMBER:[^ ]+]] = arith.index_cast %[[TEAM]]
// THREADS:    %[[AHEAD:[^ ]+]] = arith.muli %[[NUMBER]], %c8192
// THREADS:    %[[OWN:[^ ]+]] = arith.addi %[[AHEAD]], %c
// THREADS-NEXT: memref.view %{{[^ ]+}}[%[[OWN]]][] {lego.alignment = 128 : i64}
// THREADS:    nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
