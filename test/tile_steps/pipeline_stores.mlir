// Tiles are put into a ring, from which TMA stores them; before `split_roles` all threads do both.
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/pipeline_stores.mlir --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/pipeline_stores.mlir --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=1 --param ctas=2 --param consumer_registers=240 --param producer_registers=24 --emit=placed | FileCheck %s --check-prefix=ROLES
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=1 --param ctas=2 --param consumer_registers=240 --param producer_registers=24 --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=2 --param ctas=2 --emit=ptx | FileCheck %s --check-prefix=BEHIND
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=1 --param ctas=2 --explain 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/pipeline_stores.mlir --param store_parts=4 --emit=placed | FileCheck %s --check-prefix=PARTS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=4 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=2 --param store_parts=64 --emit=placed | FileCheck %s --check-prefix=OTHER
// RUN: %legoc %S/Inputs/grid.mlir --schedule=persistent --param ctas=2 --param store_stages=0 --param store_parts=2 --emit=placed | FileCheck %s --check-prefix=THREADS
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=persistent --param store_stages=2 --param store_parts=0 --emit=placed 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/pipeline_stores_late.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: %legoc %S/Inputs/grid.mlir --schedule=%S/Inputs/pipeline_stores.mlir --target=sm_89 --emit=placed | FileCheck %s --check-prefix=OTHER

// CHECK:      %[[R:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x64xf16, #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">>>
// CHECK:      %[[X:[^ ]+]] = arith.truncf
// CHECK:      %[[N:[^ ]+]] = arith.divui
// CHECK-NEXT: "lego.acquire"(%[[R]], %[[N]])
// CHECK-NEXT: "lego.put"(%[[R]], %[[N]], %[[X]])
// CHECK-NEXT: "lego.commit"(%[[R]], %[[N]])
// CHECK-NEXT: %[[T:[^ ]+]] = "lego.wait"(%[[R]], %[[N]])
// CHECK-NEXT: "lego.store"(%[[T]], %arg2, {{.*}}) {layout = #lego.layout<"OrderBy(Row(128, 192))">
// CHECK-NEXT: "lego.release"(%[[R]], %[[N]])

// STEPS:      the schedule: every element is the same
// STEPS:      lowering, run in the simulator (late):
// STEPS:      lowering, run in the simulator (early):
// STEPS:      lowering, run in the simulator (random):

// The storer has one warp of the producer's warpgroup.
// ROLES:      "lego.put"(%[[R:[^ ]+]],
// ROLES:      registers = 240 : i64, warps = 4 : i64}
// ROLES:      {first_warp = 4 : i64, name = "producer", registers = 24 : i64, warps = 3 : i64}
// ROLES:      %[[T:[^ ]+]] = "lego.wait"(%[[R]],
// ROLES-NEXT: "lego.store"(%[[T]],
// ROLES-NEXT: "lego.release"(%[[R]],
// ROLES:      {first_warp = 7 : i64, name = "storer", registers = 24 : i64, warps = 1 : i64}

// One setmaxnreg for the warpgroup of both.
// PTX:        setmaxnreg.dec.sync.aligned.u32 24;
// PTX:        setmaxnreg.dec.sync.aligned.u32 240;
// PTX-NOT:    setmaxnreg
// PTX:        stmatrix.sync.aligned
// PTX:        fence.proxy.async.shared::cta;
// PTX:        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// PTX-NEXT:   cp.async.bulk.commit_group;
// PTX-NEXT:   cp.async.bulk.wait_group.read 0;
// PTX-NEXT:   mbarrier.arrive.shared.b64
// PTX-NOT:    setmaxnreg

// Of two stages TMA reads one while the other one is begun to be stored, which is released then.
// BEHIND:      cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// BEHIND-NEXT: cp.async.bulk.commit_group;
// BEHIND-NEXT: cp.async.bulk.wait_group.read 1;
// BEHIND:      @%{{p[0-9]+}} bra
// BEHIND:      mbarrier.arrive.shared.b64
// BEHIND:      cp.async.bulk.wait_group.read 0;

// EXPLAIN:    ring       1 stages of 64×64 f16, 8192 bytes, put from registers

// Four parts of 16 columns, of each of which all threads hold some, go through a ring of two.
// PARTS:      %[[R:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x16xf16, #lego.shared<
// PARTS:      scf.for %[[K:[^ ]+]] = %c0{{.*}} to %c4{{.*}} step %c1
// PARTS-NEXT: %[[PART:[^ ]+]] = "lego.extract_part"(%{{[^ ]+}}, %[[K]]) {{.*}} -> tensor<64x16xf16
// PARTS:      arith.muli %[[K]], %c16
// PARTS:      %[[BEFORE:[^ ]+]] = arith.muli %{{.*}}, %c4
// PARTS-NEXT: %[[N:[^ ]+]] = arith.addi %[[BEFORE]], %[[K]]
// PARTS:      "lego.put"(%[[R]], %[[N]], %[[PART]])
// ZERO:       error: pipeline_stores: store_parts is 0
// ZERO:       hint: --param store_parts=4
// LATE:       error: pipeline_stores: the kernel has roles already
// OTHER-NOT:  "lego.put"
// OTHER:      "lego.store"

// Without stages threads convert and store the parts one after another.
// THREADS:    %[[PART:[^ ]+]] = "lego.extract_part"({{.*}}) : {{.*}} -> tensor<64x32xf16,
// THREADS-NEXT: arith.constant 32 : index
// THREADS-NEXT: arith.muli
// THREADS-NEXT: %[[AT:[^ ]+]] = arith.addi
// THREADS-NEXT: %[[ROWS:[^ ]+]] = "lego.convert"(%[[PART]]) : {{.*}} -> tensor<64x32xf16,
// THREADS-NEXT: "lego.store"(%[[ROWS]], %arg2, {{.*}}, %[[AT]])
