// nvvm.pipeline on vectors: accesses that convert-vector-to-llvm lowers make every index 64 bits
// wide, because that pass knows no other; plain loads and stores keep to 32.
// RUN: %legoc %s --emit=nvvm | FileCheck %s
// RUN: sed -e /transfer/d %s > %t.mlir
// RUN: %legoc %t.mlir --emit=nvvm | FileCheck %s --check-prefix=NARROW
// RUN: %legoc %s --run --device=sim | FileCheck %s --check-prefix=EQUAL

// CHECK: llvm.func @copy_kernel
// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK: llvm.getelementptr {{.*}} (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NOT: (!llvm.ptr, i32)
// CHECK: llvm.return

// NARROW: llvm.func @copy_kernel
// NARROW-NOT: builtin.unrealized_conversion_cast
// NARROW: llvm.getelementptr {{.*}} (!llvm.ptr, i32) -> !llvm.ptr, f32
// NARROW-NOT: (!llvm.ptr, i64)
// NARROW: llvm.return

// EQUAL: check{{ +}}equal to NumPy's copy: b: all 128 elements equal
module attributes {lego.reference = "copy"} {
  func.func @copy(%a: memref<4x32xf32>, %b: memref<4x32xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
      %column = "lego.apply"(%tx, %c0) {layout = #lego.layout<"OrderBy(Row(8, 4))">} : (index, index) -> index
      %row = "lego.apply"(%c1, %bx) {layout = #lego.layout<"OrderBy(Row(2, 2))">} : (index, index) -> index
      %v = vector.load %a[%bx, %column] : memref<4x32xf32>, vector<4xf32>
      vector.store %v, %b[%bx, %column] : memref<4x32xf32>, vector<4xf32>
      %w = vector.transfer_read %a[%row, %column], %zero {in_bounds = [true]} : memref<4x32xf32>, vector<4xf32>
      vector.transfer_write %w, %b[%row, %column] {in_bounds = [true]} : vector<4xf32>, memref<4x32xf32>
      gpu.terminator
    }
    return
  }
}
