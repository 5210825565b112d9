// lego.store: an element that is read, changed and written back is one thread's own.
// RUN: not %legoc %s 2>&1 | FileCheck %s
// RUN: sed -e 's/%c5, %bx)/%lane, %bx)/' %s > %t.own.mlir
// RUN: %legoc %t.own.mlir | FileCheck %s --check-prefix=OWN
// RUN: sed -e '/"lego.store/s/#H}/#H, exclusive}/' %s > %t.promised.mlir
// RUN: %legoc %t.promised.mlir | FileCheck %s --check-prefix=OWN
// RUN: sed -e '/"lego.store/s/#H}/#H, kind = "add"}/' %s > %t.kind.mlir
// RUN: not %legoc %t.kind.mlir 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: sed -e '/"lego.load/s/#H}/#H, shared = #H}/' %t.own.mlir > %t.shared.mlir
// RUN: not %legoc %t.shared.mlir 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: sed -e '/"lego.store/s/#H}/#H, within}/' %t.own.mlir > %t.within.mlir
// RUN: not %legoc %t.within.mlir 2>&1 | FileCheck %s --check-prefix=WITHIN

// CHECK: lego.store.updates.mlir:{{[0-9]+}}:5: error: several threads update the same element of a tensor here, and what one of them writes is lost
// CHECK: hint: '"lego.atomic"(%value, %tensor, ...) {layout = ..., kind = "add"}' updates it whole
// OWN: memref.store
// KIND: error: 'lego.store' with 'kind' is of no tile that threads hold
// KIND: hint: lego.atomic updates an element
// SHARED: error: 'lego.load' has no attribute 'shared'
// SHARED: hint: where a tile lies in shared memory is part of its type: lego.convert it to tensor<64x64xf16, #lego.shared<"...">>
// WITHIN: error: 'lego.store' has no attribute 'within'
// WITHIN: hint: it has layout, slice, exclusive, kind

#H = #lego.layout<"OrderBy(Row(32, 8))">

func.func @update(%h: memref<256xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c5 = arith.constant 5 : index
  %v = arith.constant 1.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%lane, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %old = "lego.load"(%h, %c5, %bx) {layout = #H} : (memref<256xf32>, index, index) -> f32
    %new = arith.addf %old, %v : f32
    "lego.store"(%new, %h, %c5, %bx) {layout = #H} : (f32, memref<256xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
