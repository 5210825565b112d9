// Nine tiles are copied in front of the loop, three of each ring: they are a loop, too, of three iterations.
// A CTA has 4 rows or fewer; of a tile that there is not, a group of cp.async is empty.
// RUN: %legoc %s --schedule=refilled --param stages=3 --emit=placed | FileCheck %s
// RUN: %legoc %s --schedule=refilled --param stages=3 --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %s --schedule=refilled --param stages=3 --check-each-step | FileCheck %s --check-prefix=STEPS
// RUN: %legoc %s --schedule=refilled --param stages=4 --check-each-step | FileCheck %s --check-prefix=STEPS

#X = #lego.layout<"OrderBy(Row(16, 768))">
func.func @center(%x: memref<12288xf32> {lego.layout = #X, lego.alignment = 16 : i64},
                  %y: memref<12288xf32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %four, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    %count = arith.subi %c4, %bx : index
    scf.for %i = %c0 to %count step %c1 {
      %before = arith.muli %i, %c4 : index
      %row = arith.addi %before, %bx : index
      %a = "lego.load"(%x, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<12288xf32>, index, index) -> tensor<1x256xf32>
      %b = "lego.load"(%x, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<12288xf32>, index, index) -> tensor<1x256xf32>
      %c = "lego.load"(%x, %row, %c512) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<12288xf32>, index, index) -> tensor<1x256xf32>
      %ab = arith.addf %a, %b : tensor<1x256xf32>
      %abc = arith.addf %ab, %c : tensor<1x256xf32>
      %s = "lego.reduce"(%abc) {kind = "add", dim = 1 : i64} : (tensor<1x256xf32>) -> tensor<1x1xf32>
      %all = "lego.broadcast"(%s) : (tensor<1x1xf32>) -> tensor<1x256xf32>
      %da = arith.subf %a, %all : tensor<1x256xf32>
      "lego.store"(%da, %y, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<12288xf32>, index, index) -> ()
      %db = arith.subf %b, %all : tensor<1x256xf32>
      "lego.store"(%db, %y, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<12288xf32>, index, index) -> ()
      %dc = arith.subf %c, %all : tensor<1x256xf32>
      "lego.store"(%dc, %y, %row, %c512) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<12288xf32>, index, index) -> ()
    }
    gpu.terminator
  }
  return
}

// CHECK:           %[[A:[^ ]+]] = "lego.make_ring"
// CHECK:           %[[B:[^ ]+]] = "lego.make_ring"
// CHECK:           %[[C:[^ ]+]] = "lego.make_ring"
// CHECK:           %[[THREE:[^ ]+]] = arith.constant 3 : index
// CHECK:           scf.for %[[K:[^ ]+]] = %{{[^ ]+}} to %[[THREE]]
// CHECK-NEXT:        %[[THERE:[^ ]+]] = arith.cmpi slt, %[[K]],
// CHECK-NEXT:        scf.if %[[THERE]]
// CHECK:               "lego.copy_async"(%[[A]], %[[K]],
// CHECK:             scf.if
// CHECK:               "lego.copy_async"(%[[B]], %[[K]],
// CHECK:             scf.if
// CHECK:               "lego.copy_async"(%[[C]], %[[K]],
// CHECK:           scf.for
// CHECK-COUNT-3:     "lego.copy_async"
// CHECK-NOT:       "lego.copy_async"

// INDEX:           scf.for
// INDEX-COUNT-3:     nvvm.cp.async.commit.group
// INDEX:           scf.for
// INDEX-NEXT:        nvvm.cp.async.wait.group 8
// INDEX:             nvvm.cp.async.wait.group 7
// INDEX:             nvvm.cp.async.wait.group 6
// INDEX-COUNT-3:     nvvm.cp.async.commit.group

// STEPS:           the schedule: {{every element is the same|the largest error}}
// STEPS:           lowering, run in the simulator (random): {{every element is the same|the largest error}}
