// Rows of two tensors pass through rings: both are waited for before either is read, so one barrier of an
// iteration is enough, and they are copied ahead in one branch and one group.
// RUN: %legoc %s --schedule=streamed --emit=placed | FileCheck %s
// RUN: %legoc %s --schedule=streamed --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %s --schedule=streamed --check-each-step | FileCheck %s --check-prefix=STEPS

#X = #lego.layout<"OrderBy(Row(7, 512))">
func.func @center(%x: memref<3584xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                  %w: memref<3584xf16> {lego.layout = #X, lego.alignment = 16 : i64},
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
        : (memref<3584xf16>, index, index) -> tensor<1x256xf16>
      %ra = "lego.reshape"(%a) : (tensor<1x256xf16>) -> tensor<256xf16>
      %b = "lego.load"(%w, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<3584xf16>, index, index) -> tensor<1x256xf16>
      %rb = "lego.reshape"(%b) : (tensor<1x256xf16>) -> tensor<256xf16>
      %va = arith.extf %ra : tensor<256xf16> to tensor<256xf32>
      %vb = arith.extf %rb : tensor<256xf16> to tensor<256xf32>
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

// CHECK:      %[[A:[^ ]+]] = "lego.make_ring"()
// CHECK-NEXT: %[[B:[^ ]+]] = "lego.make_ring"()
// CHECK:      scf.for %[[I:[^ ]+]] =
// CHECK:      %[[X:[^ ]+]] = "lego.wait"(%[[A]], %[[I]])
// CHECK-NEXT: %[[Y:[^ ]+]] = "lego.wait"(%[[B]], %[[I]])
// CHECK:      scf.if
// CHECK:      "lego.copy_async"(%[[A]]
// CHECK:      "lego.copy_async"(%[[B]]
// CHECK:      }
// CHECK:      "lego.convert"(%[[X]])
// CHECK:      "lego.convert"(%[[Y]])

// INDEX:      scf.for
// INDEX:      nvvm.cp.async.wait.group 1
// INDEX-NEXT: gpu.barrier
// INDEX:      scf.if
// INDEX:      nvvm.cp.async.commit.group
// INDEX-NOT:  {{gpu.barrier|wait.group}}

// STEPS:      the schedule: {{every element is the same|the largest error}}
// STEPS:      lowering, run in the simulator (random): the largest error
