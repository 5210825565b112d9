// A GEMM without layouts of warps or shared memory, and without a number of threads.
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=wgmma --keep %t.wgmma --emit=ptx -o %t.ptx
// RUN: cat %t.wgmma/*-choose_layouts.mlir | FileCheck %s --check-prefix=WGMMA
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=wgmma --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=wgmma --param warpgroups=1 --run --device=sim --report | FileCheck %s --check-prefix=RIGHT

// B in column-major order: its tile is contiguous along k in shared memory, too.
// RUN: sed -e '/^#B /s/Row(K, N)/Col(K, N)/' %S/Inputs/plain_matmul.mlir > %t.col.mlir
// RUN: not cmp -s %S/Inputs/plain_matmul.mlir %t.col.mlir
// RUN: %legoc %t.col.mlir --schedule=wgmma --run --device=sim --report | FileCheck %s --check-prefix=RIGHT

// What the program gives stays, and is checked.
// RUN: sed -e '/^#blocks /i #w = #lego.layout<"OrderBy(Row(8, 1))">' -e 's/"reduction"\]/"reduction"], lego.warps = #w/' %S/Inputs/plain_matmul.mlir > %t.warps.mlir
// RUN: not cmp -s %S/Inputs/plain_matmul.mlir %t.warps.mlir
// RUN: %legoc %t.warps.mlir --schedule=wgmma --param warpgroups=1 --keep %t.given --emit=ptx -o %t.ptx
// RUN: cat %t.given/*-choose_layouts.mlir | FileCheck %s --check-prefix=GIVEN


// WGMMA:      vector.contract {{.*}}lego.warps = #lego.layout<"OrderBy(Row(8, 1))">
// WGMMA:      "lego.store"({{.*}}shared = #lego.layout<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">

// GIVEN:      %[[SIZE:.*]] = arith.constant 256 : index
// GIVEN:      gpu.launch {{.*}} threads({{.*}}) in (%{{[a-z0-9]+}} = %[[SIZE]],
// GIVEN:      vector.contract {{.*}}lego.warps = #lego.layout<"OrderBy(Row(8, 1))">

// RIGHT:      0 excess sectors, 0 excess wavefronts
// RIGHT:      check{{ +}}agrees with NumPy's matmul: c: all 262144 elements within rounding

