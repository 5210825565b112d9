// Other tile sizes by --set, or in the text: they change the kernel and its launch alone.
// RUN: sed -e s/1024/128/g %examples/transpose.mlir > %t.mlir
// RUN: %legoc %t.mlir --set T=16 | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %t.mlir --set T=16 --run --device=sim | FileCheck %s --check-prefixes=T16,EQUAL
// RUN: sed -e 's/T = 32/T = 16/' %t.mlir > %t.16.mlir
// RUN: %legoc %t.mlir --set T=16 > %t.set
// RUN: %legoc %t.16.mlir | cmp %t.set -
// RUN: %legoc %t.mlir --set T=64 --set R=16 --run --device=sim | FileCheck %s --check-prefixes=T64,EQUAL
// RUN: %legoc %t.mlir --set R=32 --emit=index | FileCheck %s --check-prefix=ONCE

// INDEX: arith.shrui %{{.*}}, %c4
// INDEX: arith.andi %{{.*}}, %c15
// INDEX-NOT: {{arith.(div|rem)}}
// INDEX: gpu.terminator

// T16: kernel{{ +}}transpose_kernel{{ +}}grid 64×1×1{{ +}}block 128×1×1
// T64: kernel{{ +}}transpose_kernel{{ +}}grid 4×1×1{{ +}}block 1024×1×1
// EQUAL: check{{ +}}equal to NumPy's transpose: b: all 16384 elements equal

// As many rows as the tile has: no loop is left.
// ONCE: gpu.launch
// ONCE-NOT: scf.for
// ONCE: gpu.terminator
