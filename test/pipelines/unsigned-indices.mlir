// unsigned_indices.py: quotients and minima of indices that are not negative; others are left, and
// counts of loops.
// RUN: %legoc %s --emit=nvvm --target=sm_90 | FileCheck %s

// CHECK-LABEL: llvm.func @ids
// CHECK: llvm.udiv
// CHECK: llvm.udiv
// CHECK: llvm.urem
// CHECK: llvm.icmp "ult"
// CHECK-NOT: llvm.sdiv
func.func @ids(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = arith.floordivsi %tx, %c3 : index
    %b = arith.ceildivsi %tx, %c5 : index
    %c = arith.remsi %tx, %c6 : index
    %d = arith.addi %a, %b : index
    %i = arith.minsi %c, %d : index
    %v = memref.load %x[%i] : memref<64xf32>
    memref.store %v, %x[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}

// CHECK-LABEL: llvm.func @others
// CHECK: llvm.sdiv
// CHECK: llvm.sdiv
// CHECK-NOT: "ult"
// CHECK-NOT: llvm.udiv
func.func @others(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %less = arith.subi %tx, %c32 : index
    %a = arith.floordivsi %less, %c3 : index
    %count = arith.floordivsi %tx, %c3 : index
    scf.for %k = %c0 to %count step %c1 {
      %v = memref.load %x[%k] : memref<64xf32>
      %i = arith.minsi %a, %k : index
      %j = arith.addi %i, %c32 : index
      memref.store %v, %x[%j] : memref<64xf32>
    }
    gpu.terminator
  }
  return
}

// An argument of a block is no id.
// CHECK-LABEL: llvm.func @blocks
// CHECK: llvm.sdiv
// CHECK-NOT: llvm.udiv
func.func @blocks(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %c64 = arith.constant 64 : index
  %less = arith.constant -9 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %is_first = arith.cmpi eq, %tx, %c9 : index
    cf.cond_br %is_first, ^bb1, ^bb2(%less : index)
  ^bb1:
    gpu.barrier
    cf.br ^bb2(%c9 : index)
  ^bb2(%z: index):
    %w = arith.floordivsi %z, %c3 : index
    %i = arith.addi %w, %c9 : index
    %v = memref.load %x[%i] : memref<64xf32>
    memref.store %v, %x[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}
