// Changing one layout attribute of the GEMM changes the kernel, and nothing else: the text of
// the other lines is untouched, and the result is NumPy's again.

// B in column-major order: its tiles are brought in along k.
// RUN: sed -e '/^#B /s/Row(K, N)/Col(K, N)/' %S/../transforms/Inputs/matmul.mlir > %t.col.mlir
// RUN: not cmp -s %S/../transforms/Inputs/matmul.mlir %t.col.mlir
// RUN: %legoc %t.col.mlir --schedule=hmma --run --device=sim | FileCheck %s --check-prefix=RIGHT

// B's tile in shared memory along k as well: ldmatrix no longer transposes.
// RUN: %legoc %t.col.mlir --schedule=hmma --emit=ptx | FileCheck %s --check-prefix=TRANS
// RUN: sed -e '/^#shared_B /s/GenP.*swizzle(8, 1, 8))/GenP([BN, BK], swizzle(8, 1, 8))).OrderBy(Col(BK, BN)/' %t.col.mlir > %t.k.mlir
// RUN: not cmp -s %t.col.mlir %t.k.mlir
// RUN: %legoc %t.k.mlir --schedule=hmma --run --device=sim | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %t.k.mlir --schedule=hmma --emit=ptx | FileCheck %s --check-prefix=PLAIN
// TRANS: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PLAIN: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PLAIN-NOT: ldmatrix{{.*}}trans

// No swizzle: the tiles as they come; the simulator counts the bank conflicts, 8 in every ldmatrix.
// A warp makes 32 of these in each of 4 iterations, and 8 before the first.
// RUN: %legoc %S/../transforms/Inputs/matmul.mlir --schedule=hmma --run --device=sim --report | FileCheck %s --check-prefixes=FREE,RIGHT
// RUN: sed -e '/^#shared_[AB] /s/GenP(\(.*\), swizzle(8, 1, 8))/RegP(\1, [0, 1])/' %S/../transforms/Inputs/matmul.mlir > %t.row.mlir
// RUN: not cmp -s %S/../transforms/Inputs/matmul.mlir %t.row.mlir
// RUN: %legoc %t.row.mlir --schedule=hmma --run --device=sim --report | FileCheck %s --check-prefixes=CONFLICTS,RIGHT

// FREE: 0 excess sectors, 0 excess wavefronts
// CONFLICTS: 0 excess sectors, 243712 excess wavefronts

// Blocks along Hilbert's curve.
// RUN: sed -e '/^#blocks /s/"OrderBy.*"/"OrderBy(GenP([M\/BM, N\/BN], hilbert))"/' %S/../transforms/Inputs/matmul.mlir > %t.hilbert.mlir
// RUN: not cmp -s %S/../transforms/Inputs/matmul.mlir %t.hilbert.mlir
// RUN: %legoc %t.hilbert.mlir --schedule=hmma --run --device=sim | FileCheck %s --check-prefix=RIGHT

// Four warps one below the other.
// RUN: sed -e '/^#warps /s/Row(2, 2)/Row(4, 1)/' %S/../transforms/Inputs/matmul.mlir > %t.warps.mlir
// RUN: not cmp -s %S/../transforms/Inputs/matmul.mlir %t.warps.mlir
// RUN: %legoc %t.warps.mlir --schedule=hmma --run --device=sim | FileCheck %s --check-prefix=RIGHT

// RIGHT: check{{ +}}agrees with NumPy's matmul: c: all 262144 elements within rounding
