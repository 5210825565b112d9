// Of a buffer that is reached by an address, what is computed from the address is its use: it needs
// its bytes as long as that. The buffer in between gets others; the one behind may have them again.
// RUN: %legoc %s --schedule=%S/Inputs/pack_shared.mlir --emit=index --keep %t -o %t.out
// RUN: cat %t/01-pack_shared.mlir | FileCheck %s

#S = #lego.layout<"OrderBy(Row(64))">

// CHECK: %[[SIZE:[a-z0-9_]+]] = arith.constant 512 : i32
// CHECK: gpu.launch {{.*}} dynamic_shared_memory_size %[[SIZE]]
// CHECK: %[[AT_A:[a-z0-9_]+]] = arith.constant 0 : index
// CHECK-NEXT: memref.view %{{[0-9]+}}[%[[AT_A]]]
// CHECK: %[[AT_B:[a-z0-9_]+]] = arith.constant 256 : index
// CHECK-NEXT: memref.view %{{[0-9]+}}[%[[AT_B]]]
// CHECK: %[[AT_C:[a-z0-9_]+]] = arith.constant 0 : index
// CHECK-NEXT: memref.view %{{[0-9]+}}[%[[AT_C]]]
// CHECK: llvm.store
// CHECK-NEXT: gpu.barrier
// CHECK: gpu.terminator
func.func @addresses(%out: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = "lego.alloc"() {layout = #S} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %b = "lego.alloc"() {layout = #S} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %c = "lego.alloc"() {layout = #S} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %base = memref.extract_aligned_pointer_as_index %a
        : memref<?xf32, #gpu.address_space<workgroup>> -> index
    %word = arith.index_cast %base : index to i32
    %c4 = arith.constant 4 : i32
    %next = arith.addi %word, %c4 : i32
    %pointer = llvm.inttoptr %next : i32 to !llvm.ptr<3>
    %x = "lego.load"(%out, %tx) {layout = #S} : (memref<64xf32>, index) -> f32
    "lego.store"(%x, %b, %tx) {layout = #S}
        : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index) -> ()
    llvm.store %x, %pointer : f32, !llvm.ptr<3>
    "lego.store"(%x, %c, %tx) {layout = #S}
        : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index) -> ()
    gpu.terminator
  }
  return
}
