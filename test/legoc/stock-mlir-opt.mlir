// What legoc prints goes on in stock MLIR tools, which know the lego dialect by --irdl-file.
// REQUIRES: mlir-opt
// RUN: %mlir-opt --irdl-file=%dialects/lego.irdl.mlir %examples/transpose.mlir -o %t
// RUN: %mlir-opt --irdl-file=%dialects/lego.irdl.mlir %examples/matmul.mlir -o %t
// RUN: %legoc %examples/transpose.mlir --emit=index | %mlir-opt --irdl-file=%dialects/lego.irdl.mlir | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %examples/transpose.mlir --emit=nvvm | %mlir-opt --irdl-file=%dialects/lego.irdl.mlir | FileCheck %s --check-prefix=NVVM
// RUN: %legoc %examples/matmul.mlir --schedule=cp_async --target=sm_80 --emit=scheduled | %mlir-opt --irdl-file=%dialects/lego.irdl.mlir | FileCheck %s --check-prefix=MMA
// RUN: %legoc %examples/matmul.mlir --schedule=persistent --emit=index | %mlir-opt --irdl-file=%dialects/lego.irdl.mlir | FileCheck %s --check-prefix=MAPS
// RUN: %legoc %examples/matmul.mlir --schedule=persistent --emit=nvvm | %mlir-opt --irdl-file=%dialects/lego.irdl.mlir | FileCheck %s --check-prefix=WGMMA

// INDEX: func.func @transpose(%{{.*}}: memref<1024x1024xf32> {lego.layout = #lego.layout<
// NVVM: llvm.func @transpose_kernel(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// MMA: nvvm.mma.sync
// MAPS: "lego.tensor_map"({{.*}}) -> !llvm.ptr
// WGMMA: wgmma.mma_async
