// bf16-extensions.mlir: two bf16 of a word become f32 by a shift and a mask; a single one, and
// others than bf16, by a conversion. What `lego.extended_late` is on is extended in the loop, though it is
// loaded before.
// RUN: %legoc %s --emit=ptx | FileCheck %s

// CHECK:     ld.global.b32 %[[W:.*]], [
// CHECK-DAG: shl.b32 %{{.*}}, %[[W]], 16;
// CHECK-DAG: and.b32 %{{.*}}, %[[W]], -65536;
// CHECK:     cvt.f32.bf16
// CHECK-NOT: cvt.f32.bf16
// CHECK:     ret;

// CHECK:     ld.global.b32 %[[W:.*]], [
// CHECK-NOT: , 16;
// CHECK:     $L__BB
// CHECK:     mov.b32 %[[C:.*]], %[[W]];
// CHECK-DAG: shl.b32 %{{.*}}, %[[C]], 16;
// CHECK-DAG: and.b32 %{{.*}}, %[[C]], -65536;
// CHECK:     bra

module {
  func.func @extend(%a: memref<96xbf16>, %b: memref<96xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
      %two = arith.muli %tx, %c2 : index
      %v = vector.load %a[%two] {alignment = 4 : i64} : memref<96xbf16>, vector<2xbf16>
      %w = arith.extf %v : vector<2xbf16> to vector<2xf32>
      vector.store %w, %b[%two] : memref<96xf32>, vector<2xf32>
      %one = arith.addi %tx, %c64 : index
      %x = memref.load %a[%one] : memref<96xbf16>
      %y = arith.extf %x : bf16 to f32
      memref.store %y, %b[%one] : memref<96xf32>
      gpu.terminator
    }
    return
  }
  func.func @extend_late(%a: memref<64xbf16>, %n: index, %b: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
      %two = arith.muli %tx, %c2 : index
      %v = vector.load %a[%two] {alignment = 4 : i64} : memref<64xbf16>, vector<2xbf16>
      scf.for %i = %c0 to %n step %c1 {
        %w = arith.extf %v {lego.extended_late} : vector<2xbf16> to vector<2xf32>
        %row = arith.muli %i, %c64 : index
        %at = arith.addi %row, %two : index
        vector.store %w, %b[%at] : memref<?xf32>, vector<2xf32>
      }
      gpu.terminator
    }
    return
  }
}
