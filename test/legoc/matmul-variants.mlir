// Changing one layout of the GEMM changes the kernel, and nothing else: the text of the other lines is
// untouched, and the result is NumPy's again.

// B in column-major order: its tiles are brought in along k.
// RUN: sed -e '/^#B /s/Row(K, N)/Col(K, N)/' %S/../tile_steps/Inputs/placed_matmul.mlir > %t.col.mlir
// RUN: not cmp -s %S/../tile_steps/Inputs/placed_matmul.mlir %t.col.mlir
// RUN: %legoc %t.col.mlir --schedule=cp_async --run --device=sim | FileCheck %s --check-prefix=RIGHT

// B's tile in shared memory along k as well: ldmatrix no longer transposes.
// RUN: %legoc %t.col.mlir --schedule=cp_async --emit=ptx | FileCheck %s --check-prefix=TRANS
// RUN: sed -e '/^#shared_B /s/GenP.*swizzle(8, 1, 8))/GenP([128, 64], swizzle(8, 1, 8))).OrderBy(Col(64, 128)/' %t.col.mlir > %t.k.mlir
// RUN: not cmp -s %t.col.mlir %t.k.mlir
// RUN: %legoc %t.k.mlir --schedule=cp_async --run --device=sim | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %t.k.mlir --schedule=cp_async --emit=ptx | FileCheck %s --check-prefix=PLAIN
// TRANS: mma.sync
// TRANS: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PLAIN: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PLAIN-NOT: ldmatrix{{.*}}trans

// No swizzle: the tiles as they come; the simulator counts the bank conflicts, 8 in every ldmatrix.
// A warp makes 32 of these in each of 4 iterations, and 8 before the first.
// RUN: %legoc %S/../tile_steps/Inputs/placed_matmul.mlir --schedule=cp_async --run --device=sim --report | FileCheck %s --check-prefixes=FREE,RIGHT
// RUN: sed -e '/^#shared_[AB] /s/GenP(\(.*\), swizzle(8, 1, 8))/RegP(\1, [0, 1])/' %S/../tile_steps/Inputs/placed_matmul.mlir > %t.row.mlir
// RUN: not cmp -s %S/../tile_steps/Inputs/placed_matmul.mlir %t.row.mlir
// RUN: %legoc %t.row.mlir --schedule=cp_async --run --device=sim --report | FileCheck %s --check-prefixes=CONFLICTS,RIGHT

// FREE: 0 excess sectors, 0 excess wavefronts
// CONFLICTS: 0 excess sectors, 243712 excess wavefronts

// Blocks along Hilbert's curve.
// RUN: sed -e '/^#blocks /s/"OrderBy.*"/"OrderBy(GenP([M\/BM, N\/BN], hilbert))"/' %S/../tile_steps/Inputs/placed_matmul.mlir > %t.hilbert.mlir
// RUN: not cmp -s %S/../tile_steps/Inputs/placed_matmul.mlir %t.hilbert.mlir
// RUN: %legoc %t.hilbert.mlir --schedule=cp_async --run --device=sim | FileCheck %s --check-prefix=RIGHT

// Eight warps, two rows of four: the launch, of one thread in the program, gets the threads of the layout.
// RUN: sed -e '/^#accumulator /s/Row(4, 32, 128)).*GroupBy/Row(8, 32, 64)).OrderBy(RegP([2, 4, 2, 8, 4, 4, 4, 2], [0, 4, 3, 6, 1, 5, 2, 7])).GroupBy/' %S/../tile_steps/Inputs/placed_matmul.mlir > %t.warps.mlir
// RUN: not cmp -s %S/../tile_steps/Inputs/placed_matmul.mlir %t.warps.mlir
// RUN: %legoc %t.warps.mlir --schedule=cp_async --run --device=sim --report | FileCheck %s --check-prefixes=WARPS,RIGHT
// WARPS: block 256

// A layout is proven to be one.
// RUN: sed -e '/^#shared_A /s/8, 1, 8/8, 1, 16/' %S/../tile_steps/Inputs/placed_matmul.mlir > %t.phases.mlir
// RUN: not %legoc %t.phases.mlir --schedule=cp_async --emit=ptx 2>&1 | FileCheck %s --check-prefix=PHASES
// RUN: sed -e '/^#accumulator /s/\[128, 128\]/[128, 64]/' %S/../tile_steps/Inputs/placed_matmul.mlir > %t.sizes.mlir
// RUN: not %legoc %t.sizes.mlir --schedule=cp_async --emit=ptx 2>&1 | FileCheck %s --check-prefix=SIZES
// PHASES: error: the layout of a tile in shared memory, {{.*}}: swizzle: 16 phases of 8 elements do not fit a row of 64
// SIZES: error: {{.*}}128, 64

// RIGHT: check{{ +}}agrees with NumPy's matmul: c: all 262144 elements within rounding
