// The GEMM of the examples: no layout of a tile, and no number of threads, is written by hand, and it
// compiles by mma.sync and by wgmma. Layouts that are given stay, if the instructions can use them.
// RUN: %legoc %examples/matmul.mlir --schedule=cp_async --target=sm_80 --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %examples/matmul.mlir --schedule=persistent --param ctas=3 --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %examples/matmul.mlir --schedule=persistent --emit=ptx | FileCheck %s --check-prefix=PTX

// B in column-major order: its tile is contiguous along k in shared memory, too.
// RUN: sed -e '/^#B /s/Row(K, N)/Col(K, N)/' %examples/matmul.mlir > %t.col.mlir
// RUN: not cmp -s %examples/matmul.mlir %t.col.mlir
// RUN: %legoc %t.col.mlir --schedule=persistent --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %t.col.mlir --schedule=persistent --emit=placed | FileCheck %s --check-prefix=COLUMNS

// Operands in shared memory as the program says: rows of 64 bytes instead of 128.
// RUN: sed -e '/^#blocks /i #x = #lego.shared<"OrderBy(GenP([256, 32], tma_swizzle(64, 2))).OrderBy(RegP([128, 2, 32], [1, 0, 2])).GroupBy([128, 64])">\n#y = #lego.shared<"OrderBy(GenP([128, 64], tma_swizzle(128, 2))).OrderBy(RegP([64, 2, 64], [1, 0, 2])).GroupBy([64, 128])">' -e '/%next = /i %xs = "lego.convert"(%x) : (tensor<128x64xf16>) -> tensor<128x64xf16, #x>\n%ys = "lego.convert"(%y) : (tensor<64x128xf16>) -> tensor<64x128xf16, #y>' -e 's/(%x, %y, %acc)/(%xs, %ys, %acc)/' -e 's/: (tensor<128x64xf16>, tensor<64x128xf16>, /: (tensor<128x64xf16, #x>, tensor<64x128xf16, #y>, /' %examples/matmul.mlir > %t.given.mlir
// RUN: %legoc %t.given.mlir --schedule=persistent --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %t.given.mlir --schedule=persistent --emit=placed | FileCheck %s --check-prefix=GIVEN
// RUN: sed -e '/^#x /s/"OrderBy.*"/"OrderBy(Row(128, 64))"/' %t.given.mlir > %t.rows.mlir
// RUN: not %legoc %t.rows.mlir --schedule=persistent --emit=placed 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed -e '/^#y /s/"OrderBy.*"/"OrderBy(Row(64, 128))"/' %t.given.mlir > %t.b.mlir
// RUN: not %legoc %t.b.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=OF-B
// RUN: sed -e '/^#x /s/"OrderBy.*"/"OrderBy(Row(64, 64))"/' %t.given.mlir > %t.sizes.mlir
// RUN: not %legoc %t.sizes.mlir --emit=placed 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not %legoc %t.given.mlir --target=sm_80 --emit=placed 2>&1 | FileCheck %s --check-prefix=AMPERE

// RIGHT: check{{ +}}agrees with NumPy's matmul: c: all 262144 elements within rounding

// PTX: .maxntid 256
// PTX-DAG: cp.async.bulk.tensor.2d.shared::cluster.global
// PTX-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16

// COLUMNS: lego.make_ring{{.*}}GenP([128, 64], tma_swizzle(128, 2))
// COLUMNS: lego.make_ring{{.*}}GenP([128, 64], tma_swizzle(128, 2))).OrderBy(Col(64, 128))
// GIVEN: lego.make_ring{{.*}}GenP([256, 32], tma_swizzle(64, 2))

// ROWS: mlir:{{[0-9:]+}} error: operand A of this dot: wgmma cannot read 'OrderBy(Row(128, 64))[:, :]' in shared memory
// ROWS: hint: rows of 128 bytes, one below the other, in tma_swizzle(128, 2)
// OF-B: mlir:{{[0-9:]+}} error: operand B of this dot: wgmma cannot read
// SIZES: mlir:{{[0-9:]+}} error: a tile [128, 64] in shared memory has the layout 'OrderBy(Row(64, 64))' of [64, 64]
// AMPERE: mlir:{{[0-9:]+}} error: no wgmma computes this 'lego.dot': sm_80 has no wgmma
