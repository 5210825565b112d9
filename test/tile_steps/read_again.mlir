// Rows of a cluster pass through a ring, in which each CTA has the slice of a row that it holds. Behind
// the reduction they are read from it again, and only then released.
// RUN: %legoc %S/Inputs/rows.mlir --schedule=streamed --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/rows.mlir --schedule=streamed --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %S/Inputs/rows.mlir --schedule=streamed --check-each-step | FileCheck %s --check-prefix=STEPS

// CHECK:         %[[RING:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3 : i64, tensor<1x512xf16, #lego.shared<"OrderBy(Row(1, 256))">>>
// CHECK-COUNT-2: "lego.copy_async"
// CHECK:         scf.for %[[I:[^ ]+]] =
// CHECK:           %[[T:[^ ]+]] = "lego.wait"(%[[RING]], %[[I]])
// CHECK:           %[[X:[^ ]+]] = "lego.convert"(%[[T]])
// CHECK:           %[[V:[^ ]+]] = arith.extf %[[X]]
// CHECK:           %[[F:[^ ]+]] = arith.select {{.*}}, %[[V]],
// CHECK:           "lego.reduce"(%[[F]])
// CHECK:           %[[Y:[^ ]+]] = "lego.convert"(%[[T]])
// CHECK-NEXT:      "lego.release"(%[[RING]], %[[I]])
// CHECK-NEXT:      %[[W:[^ ]+]] = arith.extf %[[Y]]
// CHECK-NEXT:      arith.subf %[[W]]

// Slices, and the two buffers for what CTAs send, which alternate: no barrier of the cluster in the loop.
// INDEX:         nvvm.cluster.arrive.relaxed
// INDEX:         nvvm.cluster.wait
// INDEX:         scf.for
// INDEX-NOT:     nvvm.cluster
// INDEX:         nvvm.mbarrier.arrive.expect_tx
// INDEX-NOT:     nvvm.cluster
// INDEX:         nvvm.mbarrier.try_wait.parity
// INDEX-NOT:     nvvm.cluster

// STEPS:         the schedule: every element is the same
// STEPS:         lowering, run in the simulator (random): every element is the same
