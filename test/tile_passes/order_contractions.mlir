// A dot of 8-bit elements whose operand A is what another dot has left sums in the order of k in which
// no element leaves its lane; the rows of operand B are in the same order.
// RUN: %legoc %S/../tile_steps/Inputs/narrow_dots.mlir --emit=placed | FileCheck %s
// RUN: not %legoc %S/../tile_steps/Inputs/narrow_dots.mlir --target=sm_89 --emit=placed 2>&1 | FileCheck %s --check-prefix=MMA
// RUN: %legoc %S/../tile_steps/Inputs/attention.mlir --emit=placed | FileCheck %s --check-prefix=WIDE

// CHECK:      %[[P:[^ ]+]] = arith.truncf {{.*}} to tensor<64x32xf8E4M3FN
// CHECK:      %[[P1:[^ ]+]] = "lego.reshape"(%[[P]]) {{.*}} -> tensor<64x2x2x4x2xf8E4M3FN
// CHECK-NEXT: %[[P2:[^ ]+]] = "lego.transpose"(%[[P1]]) {order = array<i64: 0, 1, 3, 2, 4>}
// CHECK-NEXT: %[[A:[^ ]+]] = "lego.reshape"(%[[P2]]) {{.*}} -> tensor<64x32xf8E4M3FN
// CHECK:      "lego.transpose"{{.*}} {order = array<i64: 0, 2, 1, 3, 4>}
// CHECK:      %[[B:[^ ]+]] = "lego.convert"{{.*}} -> tensor<32x64xf8E4M3FN, #lego.shared<
// CHECK:      "lego.dot"(%[[A]], %[[B]],

// MMA:        wgmma does not compute this dot
// WIDE-NOT:   "lego.transpose"{{.*}}x2x4x2
// WIDE:       gpu.terminator
