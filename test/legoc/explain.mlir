// What was made of a module: its schedule's parameters, its launches, its machine code.
// RUN: %legoc %examples/matmul.mlir --schedule=persistent --param stages=3 --explain | FileCheck %s
// RUN: %legoc %examples/transpose.mlir --explain --target=sm_80 | FileCheck %s --check-prefix=NONE
// RUN: not %legoc %examples/transpose.mlir --explain --emit=ptx 2>&1 | FileCheck %s --check-prefix=BOTH

// CHECK: {{^}}target     sm_90a
// CHECK-NEXT: {{^}}schedule   persistent
// CHECK: {{^}}  stages = 3, given
// CHECK-NEXT: {{^}}  l2_promotion = 0{{$}}
// CHECK: {{^}}kernel     matmul_kernel  grid 16×1×1  block 256×1×1  dynamic shared memory {{[0-9]+}} bytes{{$}}
// CHECK-NEXT: {{^}}  {{[0-9]+}} registers a thread, nothing spilled

// NONE: target     sm_80
// NONE-NEXT: schedule   none
// NONE-NEXT: kernel     transpose_kernel  grid

// BOTH: legoc: error: --explain compiles to machine code: leave out --run and --emit
