// The ptx stage: what the assembler gets, with a .loc for the lines of the source.
// RUN: %legoc %examples/transpose.mlir --emit=ptx | FileCheck %s
// RUN: %legoc %examples/transpose.mlir --emit=ptx --target=sm_100a | FileCheck %s --check-prefix=TARGET
// RUN: %legoc %examples/transpose.mlir --emit=ptx --set T=16 | FileCheck %s --check-prefix=T16

// CHECK: .version 8.4
// CHECK-NEXT: .target sm_90a
// CHECK-NEXT: .address_size 64
// CHECK: .visible .entry transpose_kernel(
// CHECK: .maxntid 256, 1, 1
// CHECK: .shared .align 16 .b8 [[TILE:.*]][4096];
// CHECK-NOT: {{(div|rem)\.[us]}}
// CHECK: .loc 1 {{[1-9][0-9]* [1-9][0-9]*}}
// CHECK: mov.u32 %{{.*}}, %ctaid.x;
// CHECK-NOT: {{(div|rem)\.[us]}}
// CHECK: ld.global.b32
// CHECK-NOT: {{(div|rem)\.[us]}}
// CHECK: xor.b32
// CHECK: st.shared.b32
// CHECK: bar.sync 0;
// CHECK: ld.shared.b32
// CHECK-NOT: {{(div|rem)\.[us]}}
// CHECK: st.global.b32
// CHECK: ret;
// CHECK: .file 1 "{{.*}}transpose.mlir"

// The file's name is as it was given: the PTX is the same on every machine.
// RUN: cd %examples && %legoc transpose.mlir --emit=ptx | FileCheck %s --check-prefix=FILE
// FILE: .file 1 "transpose.mlir"
// FILE-NOT: .file

// TARGET: .version 8.6
// TARGET-NEXT: .target sm_100a

// A tile of 16: smaller blocks and a smaller buffer.
// T16: .maxntid 128, 1, 1
// T16: .shared .align 16 .b8 {{.*}}[1024];
