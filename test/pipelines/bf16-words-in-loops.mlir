// bf16-words-in-loops.mlir: words of two bf16 that are there before a loop stay words in it, where
// they would leave few registers as f32: 24 of the 64 of a thread.
// RUN: %legoc %s --emit=ptx | FileCheck %s

// CHECK:     .entry kept
// CHECK-NOT: and.b32 %{{.*}}, -65536;
// CHECK:     $L__BB0_2:
// CHECK:     mov.b32 %[[W:.*]], %{{.*}};
// CHECK-DAG: shl.b32 %{{.*}}, %[[W]], 16;
// CHECK-DAG: and.b32 %{{.*}}, %[[W]], -65536;
// CHECK:     bra $L__BB0_2;

module {
  func.func @kept(%a: memref<40960xbf16>, %b: memref<41000xf32>, %few: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c1024 = arith.constant 1024 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1024, %sy = %c1, %sz = %c1) {
      %eight = arith.muli %tx, %c8 : index
      %c0s = arith.constant 0 : index
      %i0 = arith.addi %eight, %c0s : index
      %c1s = arith.constant 8192 : index
      %i1 = arith.addi %eight, %c1s : index
      %c2s = arith.constant 16384 : index
      %i2 = arith.addi %eight, %c2s : index
      %c3s = arith.constant 24576 : index
      %i3 = arith.addi %eight, %c3s : index
      %c4s = arith.constant 32768 : index
      %i4 = arith.addi %eight, %c4s : index
      %v0 = vector.load %a[%i0] {alignment = 16 : i64} : memref<40960xbf16>, vector<8xbf16>
      %v1 = vector.load %a[%i1] {alignment = 16 : i64} : memref<40960xbf16>, vector<8xbf16>
      %v2 = vector.load %a[%i2] {alignment = 16 : i64} : memref<40960xbf16>, vector<8xbf16>
      %v3 = vector.load %a[%i3] {alignment = 16 : i64} : memref<40960xbf16>, vector<8xbf16>
      %v4 = vector.load %a[%i4] {alignment = 16 : i64} : memref<40960xbf16>, vector<8xbf16>
      scf.for %n = %c0 to %few step %c1 {
        %i = arith.index_cast %n : index to i32
        %x = arith.sitofp %i : i32 to f32
        %s = vector.broadcast %x : f32 to vector<8xf32>
        %w0 = arith.extf %v0 : vector<8xbf16> to vector<8xf32>
        %p0 = arith.mulf %w0, %s : vector<8xf32>
        %i0b = arith.addi %i0, %n : index
        vector.store %p0, %b[%i0b] {alignment = 4 : i64} : memref<41000xf32>, vector<8xf32>
        %w1 = arith.extf %v1 : vector<8xbf16> to vector<8xf32>
        %p1 = arith.mulf %w1, %s : vector<8xf32>
        %i1b = arith.addi %i1, %n : index
        vector.store %p1, %b[%i1b] {alignment = 4 : i64} : memref<41000xf32>, vector<8xf32>
        %w2 = arith.extf %v2 : vector<8xbf16> to vector<8xf32>
        %p2 = arith.mulf %w2, %s : vector<8xf32>
        %i2b = arith.addi %i2, %n : index
        vector.store %p2, %b[%i2b] {alignment = 4 : i64} : memref<41000xf32>, vector<8xf32>
        %w3 = arith.extf %v3 : vector<8xbf16> to vector<8xf32>
        %p3 = arith.mulf %w3, %s : vector<8xf32>
        %i3b = arith.addi %i3, %n : index
        vector.store %p3, %b[%i3b] {alignment = 4 : i64} : memref<41000xf32>, vector<8xf32>
        %w4 = arith.extf %v4 : vector<8xbf16> to vector<8xf32>
        %p4 = arith.mulf %w4, %s : vector<8xf32>
        %i4b = arith.addi %i4, %n : index
        vector.store %p4, %b[%i4b] {alignment = 4 : i64} : memref<41000xf32>, vector<8xf32>
      }
      gpu.terminator
    }
    return
  }
}
