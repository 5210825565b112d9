// A CTA takes as much shared memory as is asked for, if its tiles need less.
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=persistent --param min_shared_bytes=119808 --emit=placed | FileCheck %s
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=persistent --param min_shared_bytes=119808 --emit=index | FileCheck %s --check-prefix=MEMORY
// RUN: %legoc %S/Inputs/matmul.mlir --schedule=persistent --param min_shared_bytes=4096 --emit=index | FileCheck %s --check-prefix=LESS
// RUN: not %legoc %S/Inputs/matmul.mlir --schedule=persistent --param min_shared_bytes=240000 --emit=index 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK:      lego.min_shared_bytes = 119808 : i64
// MEMORY:     memref<119808xi8, #gpu.address_space<workgroup>>
// LESS-NOT:   memref<4096xi8

// ERROR:      error: reserve_shared: min_shared_bytes is 240000, and a CTA of sm_90a has 0 to 232448
// ERROR:      hint: --param min_shared_bytes=232448
