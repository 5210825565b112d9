// Two tiles of a row pass through rings of the same memory, of which the second one has one stage only:
// 3 tiles of 1024 bytes. Each is waited for where it is read, and its stage is filled again behind the
// last read of it: the tile of an iteration later of the second ring, of two iterations later of the
// first one. A thread reads what it has copied itself, so there is no barrier but those of the reduction.
// RUN: %legoc %s --schedule=refilled --param stages=2 --param shared_bytes=3072 --emit=placed | FileCheck %s
// RUN: %legoc %s --schedule=refilled --param stages=2 --param shared_bytes=3072 --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %s --schedule=refilled --param stages=2 --param shared_bytes=3072 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %s --schedule=refilled --param shared_bytes=2048 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %s --schedule=refilled --param stages=2 --emit=placed | FileCheck %s --check-prefix=WHOLE

#X = #lego.layout<"OrderBy(Row(7, 512))">
func.func @center(%x: memref<3584xf32> {lego.layout = #X, lego.alignment = 16 : i64},
                  %y: memref<3584xf32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %two, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = arith.muli %i, %c2 : index
      %row = arith.addi %before, %bx : index
      %a = "lego.load"(%x, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<3584xf32>, index, index) -> tensor<1x256xf32>
      %va = "lego.reshape"(%a) : (tensor<1x256xf32>) -> tensor<256xf32>
      %b = "lego.load"(%x, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<3584xf32>, index, index) -> tensor<1x256xf32>
      %vb = "lego.reshape"(%b) : (tensor<1x256xf32>) -> tensor<256xf32>
      %sum = arith.addf %va, %vb : tensor<256xf32>
      %s = "lego.reduce"(%sum) {kind = "add", dim = 0 : i64} : (tensor<256xf32>) -> tensor<1xf32>
      %all = "lego.broadcast"(%s) : (tensor<1xf32>) -> tensor<256xf32>
      %da = arith.subf %va, %all : tensor<256xf32>
      %oa = "lego.reshape"(%da) : (tensor<256xf32>) -> tensor<1x256xf32>
      "lego.store"(%oa, %y, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<3584xf32>, index, index) -> ()
      %db = arith.subf %vb, %all : tensor<256xf32>
      %ob = "lego.reshape"(%db) : (tensor<256xf32>) -> tensor<1x256xf32>
      "lego.store"(%ob, %y, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<3584xf32>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}

// CHECK:      %[[A:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<2 : i64
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<1 : i64
// CHECK:      "lego.copy_async"(%[[A]]
// CHECK:      "lego.copy_async"(%[[A]]
// CHECK:      "lego.copy_async"(%[[B]]
// CHECK:      scf.for %[[I:[^ ]+]] =
// CHECK:      %[[X:[^ ]+]] = "lego.wait"(%[[A]], %[[I]])
// CHECK-NEXT: "lego.convert"(%[[X]])
// CHECK:      %[[Y:[^ ]+]] = "lego.wait"(%[[B]], %[[I]])
// CHECK-NEXT: "lego.convert"(%[[Y]])
// CHECK:      "lego.reduce"
// CHECK:      "lego.convert"(%[[X]])
// CHECK-NEXT: "lego.release"(%[[A]], %[[I]])
// CHECK-NEXT: %[[TWO:[^ ]+]] = arith.constant 2
// CHECK-NEXT: arith.addi %[[I]], %[[TWO]]
// CHECK:      scf.if
// CHECK:      "lego.copy_async"(%[[A]]
// CHECK:      "lego.convert"(%[[Y]])
// CHECK-NEXT: "lego.release"(%[[B]], %[[I]])
// CHECK-NEXT: %[[ONE:[^ ]+]] = arith.constant 1
// CHECK-NEXT: arith.addi %[[I]], %[[ONE]]
// CHECK:      scf.if
// CHECK:      "lego.copy_async"(%[[B]]

// INDEX:      scf.for
// INDEX-NOT:  gpu.barrier
// INDEX:      nvvm.cp.async.wait.group {{[0-9]}}
// INDEX-NOT:  gpu.barrier
// INDEX:      nvvm.cp.async.wait.group {{[0-9]}}
// INDEX-NOT:  gpu.barrier

// STEPS:      the schedule: {{every element is the same|the largest error}}
// STEPS:      lowering, run in the simulator (random): the largest error

// WHOLE-COUNT-2: "lego.make_ring"() : () -> !lego.ring<2 : i64
