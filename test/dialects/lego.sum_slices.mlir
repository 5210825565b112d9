// Sums over slices of K stand before the steps of a schedule that distribute them, and nowhere else.
// RUN: not %legoc %s 2>&1 | FileCheck %s

// CHECK: lego.sum_slices.mlir:{{[0-9:]+}} error: 'lego.sum_slices' is left, whose sums nothing has taken to the threads
// CHECK: %total = "lego.sum_slices"
// CHECK: hint: transform_lego.contract_to_wgmma does, after transform_lego.split_k
func.func @left(%sum: vector<16x16xf32>, %i: index, %sums: memref<256xf32>,
                %arrivals: memref<1xi32>) -> vector<16x16xf32> {
  %total = "lego.sum_slices"(%sum, %i, %i, %sums, %arrivals) {slices = 2 : i64}
      : (vector<16x16xf32>, index, index, memref<256xf32>, memref<1xi32>) -> vector<16x16xf32>
  return %total : vector<16x16xf32>
}
