// lego.size and lego.dim: how many elements a layout has, and each dimension of its index.
// RUN: %legoc %s | FileCheck %s
// RUN: %legoc %s --set N=96 | FileCheck %s --check-prefix=SET

// The sizes have been filled in and go.
// CHECK-NOT: lego.sizes
module attributes {lego.sizes = {N = 64, T = 16}} {
  // CHECK-LABEL: func.func @known
  // CHECK: return %c1024, %c4, %c16 : index, index, index
  // SET-LABEL: func.func @known
  func.func @known() -> (index, index, index) {
    %0 = "lego.size"() {layout = #lego.layout<"OrderBy(Row(N, T))">} : () -> index
    %1 = "lego.dim"() {layout = #lego.layout<"OrderBy(Row(N, N)).TileBy([N/T, N/T], [T, T])">, dim = 1}
        : () -> index
    %2 = "lego.dim"() {layout = #lego.layout<"OrderBy(Row(N, N)).TileBy([N/T, N/T], [T, T])">, dim = 3}
        : () -> index
    return %0, %1, %2 : index, index, index
  }

  // CHECK-LABEL: func.func @symbolic(
  // CHECK-SAME: %[[M:.*]]: index, %[[K:.*]]: index
  // CHECK-DAG: %[[V0:.*]] = arith.muli %[[K]], %[[M]]
  // CHECK-DAG: %[[V1:.*]] = arith.shrui %[[K]], %c4
  // CHECK: return %[[V0]], %[[V1]] : index, index
  func.func @symbolic(%m: index, %k: index) -> (index, index) {
    %0 = "lego.size"(%m, %k) {layout = #lego.layout<"OrderBy(Row(M, K))">} : (index, index) -> index
    %1 = "lego.dim"(%m, %k) {layout = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/128, K/T], [128, T])">, dim = 1}
        : (index, index) -> index
    return %0, %1 : index, index
  }

  // CHECK-LABEL: func.func @expressions(
  // CHECK-SAME: %[[M:.*]]: index
  // CHECK-DAG: %[[V0:.*]] = arith.shrui %[[M]], %c4
  // CHECK-DAG: %[[V1:.*]] = arith.maxui %[[M]], %c64
  // CHECK-DAG: %[[V2:.*]] = arith.subi %[[M]], %c1
  // CHECK-DAG: %[[V3:.*]] = arith.muli %[[V2]], %[[M]]
  // CHECK-DAG: %[[V4:.*]] = arith.addi %[[V3]], %c1
  // CHECK: return %[[V0]], %[[V1]], %[[V4]] : index, index, index
  func.func @expressions(%m: index) -> (index, index, index) {
    %0 = "lego.dim"(%m) {layout = #lego.layout<"OrderBy(Row(M//T, max(M, N)))">, dim = 0} : (index) -> index
    %1 = "lego.dim"(%m) {layout = #lego.layout<"OrderBy(Row(M//T, max(M, N)))">, dim = 1} : (index) -> index
    %2 = "lego.size"(%m) {layout = #lego.layout<"OrderBy(Row(M*M - M + 1))">} : (index) -> index
    return %0, %1, %2 : index, index, index
  }
}
