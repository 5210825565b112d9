// lego.atomic: one update of memory at the layout's offset, under its mask.
// RUN: %legoc %s | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: %legoc %s --run --device=sim
// RUN: sed -e 's/"add"/"sub"/' %s > %t.kind.mlir
// RUN: not %legoc %t.kind.mlir 2>&1 | FileCheck %s --check-prefix=NO-KIND
// RUN: sed -e 's/f32/f8E5M2/g' %s > %t.type.mlir
// RUN: not %legoc %t.type.mlir 2>&1 | FileCheck %s --check-prefix=NO-TYPE

// NO-KIND: {{[0-9]+:[0-9]+}}: error: 'lego.atomic': there is no atomic update 'sub'
// NO-KIND: hint: there are: add, max
// NO-TYPE: error: 'lego.atomic': an atomic update of f8E5M2
// NO-TYPE: hint: a GPU updates numbers of 16, 32 and 64 bits

#H = #lego.layout<"OrderBy(Col(4, 8))">
#P = #lego.layout<"OrderBy(Row(30)).TileBy([8], [4])">

func.func @update(%h: memref<32xf32>, %n: memref<30xi64>, %own: memref<4xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %v = arith.constant 1.0 : f32
  %w = arith.constant 7 : i64
  %u = arith.constant 7 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    // CHECK-DAG: %[[AT:.*]] = affine.apply
    // CHECK: memref.atomic_rmw addf %{{.*}}, %{{.*}}[%[[AT]]] : (f32, memref<32xf32>) -> f32
    // PTX: atom.relaxed.gpu.global.add.f32
    %0 = "lego.atomic"(%v, %h, %tx, %bx) {layout = #H, kind = "add"} : (f32, memref<32xf32>, index, index) -> f32
    // CHECK: scf.if %{{.*}} {
    // CHECK: %[[OLD:.*]] = memref.atomic_rmw maxs
    // CHECK: memref.store %[[OLD]]
    // PTX: atom.relaxed.gpu.global.max.s64
    %1 = "lego.atomic"(%w, %n, %bx, %tx) {layout = #P, kind = "max"} : (i64, memref<30xi64>, index, index) -> i64
    "lego.store"(%1, %n, %bx, %tx) {layout = #P} : (i64, memref<30xi64>, index, index) -> ()
    // An update of the llvm dialect keeps its own order and scope.
    // PTX: atom.acq_rel.sys{{.*}}add.u32
    %p = memref.extract_aligned_pointer_as_index %own : memref<4xi32> -> index
    %i = arith.index_cast %p : index to i64
    %q = llvm.inttoptr %i : i64 to !llvm.ptr<1>
    %2 = llvm.atomicrmw add %q, %u acq_rel : !llvm.ptr<1>, i32
    gpu.terminator
  }
  return
}
