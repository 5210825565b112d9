// The scheduled stage: the same as index without a schedule, unrolled with the one that says so.
// RUN: %legoc %examples/transpose.mlir > %t.index
// RUN: %legoc %examples/transpose.mlir --emit=scheduled | cmp %t.index -
// RUN: %legoc %examples/transpose.mlir --emit=scheduled --schedule=unroll | FileCheck %s
// RUN: %legoc %examples/transpose.mlir --run --device=sim --schedule=unroll | FileCheck %s --check-prefix=EQUAL

// CHECK: gpu.launch
// CHECK-NOT: scf.for
// CHECK-COUNT-4: memref.load {{.*}} : memref<1048576xf32>
// CHECK-NOT: memref.load
// CHECK: gpu.barrier
// CHECK-COUNT-4: memref.load {{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>
// CHECK-NOT: memref.load
// CHECK: gpu.terminator

// EQUAL: kernel transpose_kernel{{ +}}grid 1024×1×1 block 256×1×1
// EQUAL: check{{ +}}equal to NumPy's transpose: b: all 1048576 elements equal
