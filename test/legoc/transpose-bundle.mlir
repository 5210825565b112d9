// The bundle stage: one file that runs without a compiler, and says the same as the source does.
// RUN: %legoc %examples/transpose.mlir --emit=bundle -o %t.lego
// RUN: %legoc %t.lego --run --device=sim > %t.bundle
// RUN: FileCheck %s < %t.bundle
// RUN: %legoc %examples/transpose.mlir --run --device=sim | cmp %t.bundle -
// RUN: not %legoc %t.lego --emit=ptx 2>&1 | FileCheck %s --check-prefix=EMIT

// CHECK: device sim
// CHECK: kernel transpose_kernel{{ +}}grid 1024×1×1 block 256×1×1
// CHECK: tensor{{ +}}a{{ +}}f32 1024×1024{{ +}}random, seed 0
// CHECK: tensor{{ +}}b{{ +}}f32 1024×1024{{ +}}written
// CHECK: check{{ +}}equal to NumPy's transpose: b: all 1048576 elements equal

// EMIT: transpose-bundle.mlir.tmp.lego: error: the input is a bundle, compiled already
// EMIT-NEXT: hint: run it from its file
