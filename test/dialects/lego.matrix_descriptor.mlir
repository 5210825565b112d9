// lego.matrix_descriptor: the address of a tile in shared memory, in units of 16 bytes, and a word.
// RUN: %legoc %s | FileCheck %s

#stages = #lego.layout<"OrderBy(Row(4), GenP([64, 64], tma_swizzle(128, 2)))">

// CHECK-LABEL: func.func @stage(
// CHECK: %[[AT:.*]] = affine.apply {{.*}}
// CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[START:.*]] = arith.index_cast %[[BASE]] : index to i32
// CHECK: %[[OFFSET:.*]] = arith.index_cast %[[AT]] : index to i32
// CHECK: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %c2_i32 : i32
// CHECK: %[[ADDRESS:.*]] = arith.addi %[[START]], %[[BYTES]] : i32
// CHECK: %[[INSIDE:.*]] = arith.andi %[[ADDRESS]], %c262143_i32 : i32
// CHECK: %[[UNITS:.*]] = arith.shrui %[[INSIDE]], %c4_i32 : i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[UNITS]] : i32 to i64
// CHECK: arith.addi %[[WIDE]], %c4611686293305294848_i64 : i64
// CHECK-NOT: lego.
func.func @stage(%o: memref<4xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %m = "lego.alloc"() {layout = #stages} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %d = "lego.matrix_descriptor"(%m, %b, %c0, %c0) {layout = #stages, word = 4611686293305294848 : i64}
        : (memref<?xf16, #gpu.address_space<workgroup>>, index, index, index) -> i64
    memref.store %d, %o[%b] : memref<4xi64>
    gpu.terminator
  }
  return
}
