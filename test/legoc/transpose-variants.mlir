// Changing one layout attribute of the transpose changes the kernel, and nothing else: the text of
// the other lines is untouched, and the result is NumPy's again.
// RUN: sed -e s/1024/128/g %examples/transpose.mlir > %t.mlir
// RUN: %legoc %t.mlir --run --device=sim | FileCheck %s --check-prefix=EQUAL

// The output in column-major order.
// RUN: sed -e '/^#B /s/Row(N, N)/Col(N, N)/' %t.mlir > %t.col.mlir
// RUN: not cmp -s %t.mlir %t.col.mlir
// RUN: %legoc %t.col.mlir | FileCheck %s --check-prefix=COL
// RUN: %legoc %t.col.mlir --run --device=sim | FileCheck %s --check-prefix=EQUAL
// COL: memref.store %{{.*}}, %collapse_shape[%{{.*}}] : memref<16384xf32>

// No swizzle: the tile as it comes, and no XOR is left.
// RUN: sed -e '/^#tile /s/GenP(\[T, T\], swizzle)/Row(T, T)/' %t.mlir > %t.row.mlir
// RUN: not cmp -s %t.mlir %t.row.mlir
// RUN: %legoc %t.row.mlir | FileCheck %s --check-prefix=ROW
// RUN: %legoc %t.row.mlir --run --device=sim | FileCheck %s --check-prefix=EQUAL
// ROW: scf.for
// ROW-NOT: arith.xori
// ROW: gpu.terminator

// A permutation with a square root in its inverse; applied on both sides of the tile.
// RUN: sed -e '/^#tile /s/swizzle/antidiagonal/' %t.mlir > %t.diagonal.mlir
// RUN: not cmp -s %t.mlir %t.diagonal.mlir
// RUN: %legoc %t.diagonal.mlir | FileCheck %s --check-prefix=DIAGONAL
// RUN: %legoc %t.diagonal.mlir --run --device=sim | FileCheck %s --check-prefix=EQUAL
// DIAGONAL: scf.for
// DIAGONAL: arith.select

// Blocks in another order, threads in another order.
// RUN: sed -e '/^#blocks /s/Row(N.T, N.T)/Col(N\/T, N\/T)/' -e '/^#threads /s/Row(R, T)/Col(R, T)/' %t.mlir > %t.order.mlir
// RUN: not cmp -s %t.mlir %t.order.mlir
// RUN: %legoc %t.order.mlir --run --device=sim | FileCheck %s --check-prefix=EQUAL

// EQUAL: check{{ +}}equal to NumPy's transpose: b: all 16384 elements equal
