// The cubin stage: an ELF image for the target, by file and by stdout.
// RUN: %legoc %examples/transpose.mlir --emit=cubin -o %t.cubin
// RUN: %legoc %examples/transpose.mlir --emit=cubin > %t.stdout
// RUN: cmp %t.cubin %t.stdout
// RUN: od -A n -t x1 -N 4 %t.cubin | FileCheck %s
// RUN: grep -c -a transpose_kernel %t.cubin | FileCheck %s --check-prefix=NAME

// CHECK: 7f 45 4c 46
// NAME: {{[1-9]}}
