// The step copies_to_tma where a tile is of one of several tensors: each has its map, and all of
// them are one parameter, from which the kernel takes the map of the number.
// RUN: %legoc %s --schedule=%S/Inputs/copies_to_tma.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/01-copies_to_tma.mlir | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/copies_to_tma.mlir --emit=ptx --target=sm_90a | FileCheck %s --check-prefix=PTX

#A = #lego.layout<"OrderBy(Row(M, 64)).TileBy([ceildiv(M, 32), 1], [32, 64])">
#S = #lego.layout<"OrderBy(GenP([32, 64], tma_swizzle(128, 2)))">

// CHECK-LABEL: func.func @copy
func.func @copy(%a: memref<6400xf16>, %b: memref<2048xf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 32 : index
  // CHECK-DAG: %[[A:[0-9]+]] = "lego.tensor_map"(%arg0) {{.*}}shape = array<i64: 64, 100>
  // CHECK-DAG: %[[B:[0-9]+]] = "lego.tensor_map"(%arg1) {{.*}}shape = array<i64: 64, 32>
  // CHECK: %[[MAPS:[0-9]+]] = "lego.tensor_maps"(%[[A]], %[[B]])
  // CHECK: gpu.launch
  // PTX: .param .align 64 .b8 copy_kernel_param_0[256]
  gpu.launch blocks(%n, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %s = "lego.alloc"() {layout = #S} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %at = arith.constant 64 : i32
    %bytes = arith.constant 4096 : i32
    %full = llvm.inttoptr %at : i32 to !llvm.ptr<3>
    nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
    %which = arith.remui %n, %c2 : index
    %M = "lego.table"(%which) {values = array<i64: 100, 32>} : (index) -> index
    %a0 = memref.cast %a : memref<6400xf16> to memref<?xf16>
    %b0 = memref.cast %b : memref<2048xf16> to memref<?xf16>
    %t = "lego.pick"(%which, %a0, %b0) : (index, memref<?xf16>, memref<?xf16>) -> memref<?xf16>
    // The tensor of most tiles has four one below the other.
    // CHECK: "lego.apply"(%{{.*}}) {layout = #lego.layout<"OrderBy(Row({{[0-9]+}}, {{32|64}}))">}
    // CHECK: %[[MAP:[0-9]+]] = llvm.getelementptr %[[MAPS]][%{{[0-9]+}}] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<128 x i8>
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]],
    %x = "lego.load"(%t, %c0, %c0, %M) {layout = #A, slice = array<i64: 2, 3>}
        : (memref<?xf16>, index, index, index) -> vector<32x64xf16>
    "lego.store"(%x, %s) {layout = #S, slice = array<i64: 0, 1>}
        : (vector<32x64xf16>, memref<?xf16, #gpu.address_space<workgroup>>) -> ()
    gpu.terminator
  }
  return
}
