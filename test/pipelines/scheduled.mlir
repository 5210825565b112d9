// scheduled.pipeline: clean up what a schedule left; without a schedule it does not run.
// RUN: echo "module attributes {transform.with_named_sequence} {" > %t.schedule
// RUN: echo "transform.named_sequence @__transform_main(%%m: !transform.any_op) {" >> %t.schedule
// RUN: echo "%%l = transform.structured.match ops{[\"scf.for\"]} in %%m : (!transform.any_op) -> !transform.any_op" >> %t.schedule
// RUN: echo "transform.loop.unroll %%l {factor = 2} : !transform.any_op" >> %t.schedule
// RUN: echo "transform.yield } }" >> %t.schedule
// RUN: %legoc %s --emit=scheduled | FileCheck %s --check-prefix=WITHOUT
// RUN: %legoc %s --emit=scheduled --schedule=%t.schedule | FileCheck %s

// What unrolling computes twice is shared, what it adds to a constant is folded.
// WITHOUT: scf.for
// CHECK-LABEL: func.func @two
// CHECK-NOT: scf.for
// CHECK: affine.apply
// CHECK-COUNT-2: memref.store
// CHECK-NEXT: return
func.func @two(%out: memref<64xf32>, %i: index, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %k = %c0 to %c2 step %c1 {
    %0 = arith.addi %k, %c1 : index
    "lego.store"(%v, %out, %i, %0) {layout = #lego.layout<"OrderBy(Row(16, 4))">} : (f32, memref<64xf32>, index, index) -> ()
  }
  return
}
