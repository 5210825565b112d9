// A GEMM without layouts of warps or shared memory, and without a number of threads, by both schedules.
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=hmma --keep %t.hmma --emit=ptx -o %t.ptx
// RUN: cat %t.hmma/*-choose_layouts.mlir | FileCheck %s
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=wgmma --keep %t.wgmma --emit=ptx -o %t.ptx
// RUN: cat %t.wgmma/*-choose_layouts.mlir | FileCheck %s --check-prefix=WGMMA
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=hmma --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=hmma --target=sm_80 --param warps_down=4 --param warps_across=1 --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=wgmma --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %S/Inputs/plain_matmul.mlir --schedule=wgmma --param warpgroups=1 --run --device=sim --report | FileCheck %s --check-prefix=RIGHT

// B in column-major order: its tile is contiguous along k in shared memory, too.
// RUN: sed -e '/^#B /s/Row(K, N)/Col(K, N)/' %S/Inputs/plain_matmul.mlir > %t.col.mlir
// RUN: not cmp -s %S/Inputs/plain_matmul.mlir %t.col.mlir
// RUN: %legoc %t.col.mlir --schedule=hmma --run --device=sim --report | FileCheck %s --check-prefix=RIGHT
// RUN: %legoc %t.col.mlir --schedule=wgmma --run --device=sim --report | FileCheck %s --check-prefix=RIGHT

// What the program gives stays, and is checked.
// RUN: sed -e '/^#blocks /i #w = #lego.layout<"OrderBy(Row(4, 2))">' -e 's/"reduction"\]/"reduction"], lego.warps = #w/' %S/Inputs/plain_matmul.mlir > %t.warps.mlir
// RUN: not cmp -s %S/Inputs/plain_matmul.mlir %t.warps.mlir
// RUN: %legoc %t.warps.mlir --schedule=hmma --param warps_down=1 --keep %t.given --emit=ptx -o %t.ptx
// RUN: cat %t.given/*-choose_layouts.mlir | FileCheck %s --check-prefix=GIVEN
// RUN: sed -e '/^#warps /s/Row(2, 2)/Row(4, 2)/' %S/Inputs/matmul.mlir > %t.threads.mlir
// RUN: not %legoc %t.threads.mlir --schedule=hmma --emit=scheduled 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not %legoc %S/Inputs/plain_matmul.mlir --schedule=hmma --param warps_down=0 --emit=scheduled 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %legoc %S/Inputs/plain_matmul.mlir --schedule=hmma --param warps_down=3 --emit=scheduled 2>&1 | FileCheck %s --check-prefix=THREE

// CHECK:      %[[SIZE:.*]] = arith.constant 128 : index
// CHECK:      gpu.launch {{.*}} threads({{.*}}) in (%{{[a-z0-9]+}} = %[[SIZE]],
// CHECK:      "lego.load"(%arg0{{.*}}shared = #lego.layout<"OrderBy(GenP([128, 64], tma_swizzle(128, 2)))">
// CHECK:      "lego.load"(%arg1{{.*}}shared = #lego.layout<"OrderBy(GenP([128, 64], tma_swizzle(128, 2))).OrderBy(RegP([64, 2, 64], [1, 0, 2])).GroupBy([64, 128])">
// CHECK:      vector.contract {{.*}}lego.warps = #lego.layout<"OrderBy(Row(2, 2))">
// CHECK:      "lego.store"({{.*}}shared = #lego.layout<

// WGMMA:      vector.contract {{.*}}lego.warps = #lego.layout<"OrderBy(Row(8, 1))">
// WGMMA:      "lego.store"({{.*}}shared = #lego.layout<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">

// GIVEN:      %[[SIZE:.*]] = arith.constant 256 : index
// GIVEN:      gpu.launch {{.*}} threads({{.*}}) in (%{{[a-z0-9]+}} = %[[SIZE]],
// GIVEN:      vector.contract {{.*}}lego.warps = #lego.layout<"OrderBy(Row(4, 2))">

// RIGHT:      0 excess sectors, 0 excess wavefronts
// RIGHT:      check{{ +}}agrees with NumPy's matmul: c: all 262144 elements within rounding

// THREADS:    error: contract_to_mma: 8 warps of 'OrderBy(Row(4, 2))' are 256 threads, a CTA has 128
// NONE:       error: choose_layouts: warps_down is 0
// NONE:       hint: --param warps_down=2
// THREE:      error: contract_to_mma: the tile has 128 rows, no multiple of 48: 3 warps
// THREE:      hint: change the tile's sizes, or the warps
