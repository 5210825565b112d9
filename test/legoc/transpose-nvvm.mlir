// The nvvm stage: one gpu.module for the target, in the llvm and nvvm dialects alone.
// RUN: %legoc %examples/transpose.mlir --emit=nvvm --target=sm_80 > %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// CHECK: gpu.launch_func @[[MODULE:.*]]::@[[KERNEL:.*]] blocks in (%c1024, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK: gpu.module @[[MODULE]] [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx83">]
// CHECK: llvm.mlir.global internal @[[TILE:.*]]() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x f32>
// CHECK: llvm.func @[[KERNEL]](%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes {gpu.kernel, gpu.known_block_size = array<i32: 256, 1, 1>
// CHECK-DAG: llvm.mlir.addressof @[[TILE]] : !llvm.ptr<3>
// CHECK-DAG: nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 1024> : i32
// CHECK-DAG: nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
// CHECK: llvm.getelementptr inbounds|nuw %{{.*}}[%{{.*}}] : (!llvm.ptr, i32) -> !llvm.ptr, f32
// CHECK: llvm.xor
// CHECK: nvvm.barrier
// CHECK: llvm.return

// NONE-NOT: {{arith|affine|memref|scf|builtin.unrealized}}{{\.[a-z_]+ }}%
// NONE-NOT: llvm.{{[us](div|rem)}}
