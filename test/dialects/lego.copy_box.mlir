// lego.copy_box: a slice of a window, as boxes of a tensor map that the host encodes.
// RUN: %legoc %s --target=sm_90a | FileCheck %s
// RUN: not %legoc %s --target=sm_80 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: sed -e 's/Row(2, 20, 18, 4)).Window/Row(2, 18, 18, 4)).Window/' %s > %t && not %legoc %t --target=sm_90a 2>&1 | FileCheck %s --check-prefix=ODD

#near = #lego.layout<"OrderBy(Row(8, 32, 64)).GroupBy([8, 32, 16, 4]).Window([10, 2, 18, 18, 4], (z, c, y, x, e) -> (z - 1, 16*c + y - 1, x - 1, e), [zero, zero, zero, inside])">
#stages = #lego.layout<"OrderBy(Row(2, 20, 18, 4)).Window([2, 18, 18, 4])">
#aligned = #lego.layout<"OrderBy(Row(2, 20, 18, 4))">

// A word's dimension and that of the words are one of the map, so that its rows have 72 elements.
// CHECK: #[[ROW:.*]] = affine_map<()[s0] -> (s0 * 16 - 1)>
// CHECK-LABEL: func.func @planes(
// CHECK: %[[MAP:.*]] = "lego.tensor_map"(%arg0)
// CHECK-SAME: box = array<i64: 72, 18, 1>
// CHECK-SAME: shape = array<i64: 64, 32, 8>, strides = array<i64: 256, 8192>, swizzle = 0
// CHECK: gpu.launch
// CHECK: %[[Y:.*]] = affine.apply #[[ROW]]
// CHECK: %[[ROW32:.*]] = arith.index_cast %[[Y]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%c-4_i32, %[[ROW32]], %{{.*}}]
// CHECK-NOT: nvvm.cp.async.bulk
// OLD: copy_box.mlir:41:5: error: sm_80 has no TMA
// ODD: error: TMA writes slices at multiples of 128 bytes of shared memory
func.func @planes(%x: memref<16384xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1 : i32
  gpu.launch blocks(%b, %z, %bz) in (%gx = %c2, %gy = %c10, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %stages = "lego.alloc"() {layout = #aligned, lego.alignment = 128 : i64}
        : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %full = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(1))">}
        : () -> memref<?xi64, #gpu.address_space<workgroup>>
    %at = memref.extract_aligned_pointer_as_index %full
        : memref<?xi64, #gpu.address_space<workgroup>> -> index
    %address = arith.index_cast %at : index to i64
    %barrier = llvm.inttoptr %address : i64 to !llvm.ptr<3>
    nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
    "lego.copy_box"(%x, %z, %b, %c0, %c0, %c0, %stages, %c1, %c0, %c0, %c0, %barrier)
        {layout = #near, slice = array<i64: 2, 3, 4>, target = #stages,
         target_slice = array<i64: 1, 2, 3>, operandSegmentSizes = array<i32: 1, 5, 1, 4, 1>}
        : (memref<16384xf32>, index, index, index, index, index,
           memref<?xf32, #gpu.address_space<workgroup>>, index, index, index, index, !llvm.ptr<3>) -> ()
    gpu.terminator
  }
  return
}
