// The llvm stage: the kernel's LLVM IR, with the lines of the source.
// RUN: %legoc %examples/transpose.mlir --emit=llvm | FileCheck %s

// CHECK: @[[TILE:.*]] = internal addrspace(3) global [1024 x float]
// CHECK: define ptx_kernel void @transpose_kernel(ptr %0, ptr %1) {{.*}} !dbg
// CHECK: call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg
// CHECK: call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg
// CHECK: load float, ptr %{{.*}}, !dbg ![[LOAD:[0-9]+]]
// CHECK: store float %{{.*}}, ptr addrspace(3) %{{.*}}, !dbg
// CHECK: call void @llvm.nvvm.barrier
// CHECK: load float, ptr addrspace(3)
// CHECK: store float %{{.*}}, ptr %
// CHECK: ret void
// CHECK: !DIFile(filename: "transpose.mlir", directory: "{{.*}}examples
// CHECK: ![[LOAD]] = !DILocation(line: {{[1-9][0-9]*}}, column: {{[1-9][0-9]*}}
