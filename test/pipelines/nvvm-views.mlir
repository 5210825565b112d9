// flat_views.py: a flat view is its buffer; of other views expand-strided-metadata computes the addresses.
// RUN: %legoc %s --emit=nvvm --target=sm_90 | FileCheck %s

// CHECK-LABEL: llvm.func @flat
// CHECK: llvm.getelementptr {{.*}}%arg0[%{{.*}}] : (!llvm.ptr, i32) -> !llvm.ptr, f32
func.func @flat(%x: memref<2x4x8xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %rows = memref.collapse_shape %x [[0, 1], [2]] : memref<2x4x8xf32> into memref<8x8xf32>
    %line = memref.collapse_shape %rows [[0, 1]] : memref<8x8xf32> into memref<64xf32>
    memref.store %zero, %line[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: llvm.func @part
// CHECK: llvm.getelementptr {{.*}}[{{.*}}] : (!llvm.ptr, i32) -> !llvm.ptr, f32
func.func @part(%x: memref<64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %part = memref.subview %x[16, 32] [16, 16] [1, 1]
        : memref<64x64xf32> to memref<16x16xf32, strided<[64, 1], offset: 1056>>
    memref.store %zero, %part[%tx, %tx] : memref<16x16xf32, strided<[64, 1], offset: 1056>>
    gpu.terminator
  }
  return
}
