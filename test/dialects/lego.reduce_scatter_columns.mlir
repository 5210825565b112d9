// Sums over the blocks of a cluster stand between two steps of a schedule, and nowhere else.
// RUN: not %legoc %s 2>&1 | FileCheck %s

// CHECK: lego.reduce_scatter_columns.mlir:{{[0-9:]+}} error: 'lego.reduce_scatter_columns' is left, whose sums nothing has taken to the threads
// CHECK: %own = "lego.reduce_scatter_columns"(%sums, %rank)
// CHECK: hint: transform_lego.contract_to_wgmma does, after transform_lego.split_k
func.func @left(%sums: vector<16x16xf32>, %rank: index) -> vector<16x8xf32> {
  %own = "lego.reduce_scatter_columns"(%sums, %rank) {layout = #lego.layout<"OrderBy(Row(2, 8))">}
      : (vector<16x16xf32>, index) -> vector<16x8xf32>
  return %own : vector<16x8xf32>
}
