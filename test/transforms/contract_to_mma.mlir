// The step contract_to_mma: a contraction and the operations on its result, lowered.
// RUN: %legoc %s --schedule=%S/Inputs/contract_to_mma.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/02-contract_to_mma.mlir | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: %legoc %s --schedule=%S/Inputs/contract_to_mma.mlir --emit=scheduled --param prefetch=1 \
// RUN:     --keep %t1 -o %t1.out
// RUN: cat %t1/02-contract_to_mma.mlir | FileCheck %s --check-prefixes=CHECK,PREFETCH
// RUN: %legoc %s --schedule=%S/Inputs/contract_to_mma.mlir --emit=ptx | FileCheck %s --check-prefix=PTX

#A = #lego.layout<"OrderBy(Row(4), GenP([32, 32], swizzle(8, 1, 4)))">
#B = #lego.layout<"OrderBy(GenP([32, 32], swizzle(8, 1, 4)))">
#C = #lego.layout<"OrderBy(Row(64, 96)).TileBy([2, 3], [32, 32])">
#warps = #lego.layout<"OrderBy(Row(2, 1))">
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
         affine_map<(i, j, k) -> (i, j)>]

// Two warps, one above the other, have 16 by 32 elements each: four fragments, and of each a thread
// has two pairs of neighbours.
// CHECK-LABEL: func.func @gemm
func.func @gemm(%a: memref<1024xf16>, %bias: memref<32xf32>,
                   %c: memref<64x96xf16> {lego.alignment = 4 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // Who the thread is, by layouts.
    // CHECK: %[[WARP:.*]]:2 = "lego.inv"(%{{.*}}) {layout = #lego.layout<"OrderBy(Row(2, 32))">}
    // CHECK-NEXT: %[[PLACE:.*]]:2 = "lego.inv"(%[[WARP]]#0) {layout = #lego.layout<"OrderBy(Row(2, 1))">}
    // CHECK-NEXT: %[[OWN:.*]]:2 = "lego.inv"(%[[WARP]]#1) {layout = #lego.layout<"OrderBy(Row(8, 4))">}
    %sa = "lego.alloc"() {layout = #A} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %sb = "lego.alloc"() {layout = #B} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    // CHECK: %[[SUM:.*]]:16 = scf.for %[[K:[^ ]+]] =
    // CHECK-NOT: vector.contract
    // Addresses: a fragment's rows, in the left operand's stage; swizzled, so one for each step.
    // CHECK: "lego.apply"(%[[WARP]]#1, %{{.*}}) {layout = #lego.layout<"OrderBy(RegP([2, 2, 8, 4, 2], [1, 2, 0, 3, 4])).GroupBy([32, 8])">}
    // CHECK: "lego.apply"(%[[K]], %[[PLACE]]#0, {{.*}}OrderBy(Row(4), GenP([32, 32], swizzle(8, 1, 4))).GroupBy([4, 2, 1, 16, 1, 2, 16])
    // CHECK: "lego.apply"(%[[K]], %[[PLACE]]#0, {{.*}}OrderBy(Row(4), GenP([32, 32], swizzle(8, 1, 4))).GroupBy([4, 2, 1, 16, 1, 2, 16])
    // Those of the right operand differ from step to step by a constant.
    // CHECK: "lego.apply"({{.*}}OrderBy(GenP([32, 32], swizzle(8, 1, 4))).GroupBy([1, 2, 16, 1, 2, 16])
    // CHECK: %[[B0:.*]] = llvm.inttoptr
    // CHECK: %[[B1:.*]] = llvm.inttoptr
    // CHECK: nvvm.ldmatrix {{.*}}mma_layout<row>, num = 4
    // CHECK: nvvm.ldmatrix %[[B0]] {{.*}}mma_layout<col>, num = 4
    // CHECK: nvvm.ldmatrix %[[B1]] {{.*}}mma_layout<col>, num = 4
    // PLAIN-COUNT-4: nvvm.mma.sync
    // CHECK: nvvm.ldmatrix {{.*}}mma_layout<row>, num = 4
    // CHECK: llvm.getelementptr %[[B0]][1024]
    // CHECK: llvm.getelementptr %[[B1]][1024]
    // CHECK: nvvm.ldmatrix {{.*}}mma_layout<col>, num = 4
    // PLAIN-COUNT-4: nvvm.mma.sync
    // PREFETCH-COUNT-8: nvvm.mma.sync
    // CHECK-NOT: nvvm.mma.sync
    // CHECK: scf.yield
    %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> vector<32x32xf32> {
      %x = "lego.load"(%sa, %k) {layout = #A, slice = array<i64: 1, 2>}
          : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<32x32xf16>
      %y = "lego.load"(%sb) {layout = #B, slice = array<i64: 0, 1>}
          : (memref<?xf16, #gpu.address_space<workgroup>>) -> vector<32x32xf16>
      %next = vector.contract {indexing_maps = #maps,
          iterator_types = ["parallel", "parallel", "reduction"], lego.warps = #warps}
          %x, %y, %acc : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    // A row that all rows share is held by column only, and added to the pairs of both.
    // CHECK: %[[ROW:.*]] = "lego.load"(%{{.*}}, %[[PLACE]]#1, %[[OWN]]#1) {layout = #lego.layout<"OrderBy(Row(32)).GroupBy([1, 4, 4, 2])">, slice = array<i64: 1, 3>}
    // CHECK-COUNT-8: arith.addf {{.*}}vector<2xf32>
    // CHECK-COUNT-8: arith.truncf {{.*}}vector<2xf32> to vector<2xf16>
    // CHECK: "lego.store"(%{{.*}}, %{{.*}}, %[[PLACE]]#0, %[[PLACE]]#1, %[[OWN]]#1, %[[OWN]]#0) {{.*}}slice = array<i64: 4, 5, 6, 9>
    // CHECK-NEXT: gpu.terminator
    // PTX-COUNT-8: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    // PTX-COUNT-8: st.global.b32
    // PTX-NOT: st.global
    %row = "lego.load"(%bias) {layout = #lego.layout<"OrderBy(Row(32))">, slice = array<i64: 0>}
        : (memref<32xf32>) -> vector<32xf32>
    %all = vector.broadcast %row : vector<32xf32> to vector<32x32xf32>
    %more = arith.addf %sum, %all : vector<32x32xf32>
    %result = arith.truncf %more : vector<32x32xf32> to vector<32x32xf16>
    "lego.store"(%result, %c, %bx, %c2) {layout = #C, slice = array<i64: 2, 3>}
        : (vector<32x32xf16>, memref<64x96xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}

// Without a loop; the result goes to shared memory in f16, two fragments an instruction.
// CHECK-LABEL: func.func @once
func.func @once(%a: memref<1024xf16>, %c: memref<1024xf16>) {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK-COUNT-16: nvvm.mma.sync
    // CHECK-COUNT-2: llvm.inttoptr
    // CHECK-COUNT-4: nvvm.stmatrix {{.*}}mma_layout<row>
    // CHECK-NOT: nvvm.stmatrix
    // CHECK: gpu.terminator
    %s = "lego.alloc"() {layout = #B} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %x = "lego.load"(%s) {layout = #B, slice = array<i64: 0, 1>}
        : (memref<?xf16, #gpu.address_space<workgroup>>) -> vector<32x32xf16>
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %sum = vector.contract {indexing_maps = #maps,
        iterator_types = ["parallel", "parallel", "reduction"],
        lego.warps = #lego.layout<"OrderBy(Row(1, 1))">}
        %x, %x, %zero : vector<32x32xf16>, vector<32x32xf16> into vector<32x32xf32>
    gpu.barrier
    %result = arith.truncf %sum : vector<32x32xf32> to vector<32x32xf16>
    "lego.store"(%result, %s) {layout = #B, slice = array<i64: 0, 1>}
        : (vector<32x32xf16>, memref<?xf16, #gpu.address_space<workgroup>>) -> ()
    gpu.terminator
  }
  return
}
