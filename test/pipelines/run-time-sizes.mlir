// What only the launch knows becomes arguments of the host function: bare addresses, and numbers.
// RUN: %legoc %s --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %s --emit=nvvm | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX

#A = #lego.layout<"OrderBy(Row(M, N))">

// Sizes and strides are values of the host. The layout's positions lie at the buffer's strides, and
// what 16 divides is accessed as a vector.
// INDEX-LABEL: func.func @rows(
// INDEX-SAME: condition = "a0.d1 4 % 0 =="
// INDEX: memref.dim %arg0, %c0
// INDEX: %{{.*}}, %{{.*}}, %{{.*}}:2, %[[S:.*]]:2 = memref.extract_strided_metadata %arg0
// INDEX: gpu.launch
// INDEX: %[[FLAT:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [2147483647], strides: [1]
// INDEX: %[[ROW:.*]] = arith.muli %{{.*}}, %[[S]]#0 : index
// INDEX: vector.load %[[FLAT]][%{{.*}}] {alignment = 16 : i64} : memref<2147483647xf32>, vector<4xf32>
// INDEX-NOT: arith.divui
// INDEX: memref.store

// CHECK: func.func @rows(%arg0: memref<2147483647xf32>
// CHECK-SAME: %arg1: memref<2147483647xf32>
// CHECK-SAME: %[[ROWS:.*]]: index {lego.computed = "a0.d0"}
// CHECK-SAME: %[[STRIDE:.*]]: index {lego.computed = "a0.s0"}
// CHECK-NOT: memref.dim
// CHECK: gpu.launch_func @rows_kernel::@rows_kernel blocks in (%[[ROWS]], %c1, %c1)
// CHECK: llvm.func @rows_kernel(
// CHECK-SAME: !llvm.ptr
// CHECK-SAME: !llvm.ptr
// CHECK-SAME: i32

// PTX: .param .u64 .ptr {{.*}}rows_kernel_param_0,
// PTX-NEXT: .param .u64 .ptr {{.*}}rows_kernel_param_1,
// PTX-NEXT: .param .u32 rows_kernel_param_2
// PTX: ld.global.v4.b32
func.func @rows(%x: memref<?x?xf32, strided<[?, 1]>>
                    {lego.layout = #A, lego.alignment = 16 : i64, lego.elements = 2147418112 : i64,
                     lego.stride_divisors = array<i64: 16, 1>},
                %y: memref<?x4xf32> {lego.elements = 2147418112 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1]>>
  gpu.launch blocks(%b, %by, %bz) in (%gx = %m, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%tx = %c1, %tyy = %c1, %tzz = %c1) {
    %n = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
    %v = "lego.load"(%x, %b, %c0, %c0, %m, %n)
        {layout = #lego.layout<"OrderBy(Row(M, N{4})).TileBy([M, N/4], [1, 4])">, slice = array<i64: 3>}
        : (memref<?x?xf32, strided<[?, 1]>>, index, index, index, index, index) -> vector<4xf32>
    %e:4 = vector.to_elements %v : vector<4xf32>
    memref.store %e#0, %y[%b, %c0] : memref<?x4xf32>
    memref.store %e#3, %y[%b, %c3] : memref<?x4xf32>
    gpu.terminator
  }
  return
}
