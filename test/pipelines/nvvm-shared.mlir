// Shared memory beyond what a kernel may declare is dynamic, and its launch names the bytes: that
// of a kernel's arguments, of lego.alloc and of memref.global alike, behind what is dynamic already.
// RUN: %legoc %s --emit=nvvm | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX

// CHECK: gpu.module @m
// CHECK: llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK-NOT: llvm.mlir.global{{.*}}10240
// CHECK: llvm.mlir.global internal @__wg_small_0() {{.*}} : !llvm.array<16 x f32>
// CHECK-NOT: llvm.mlir.global

// CHECK-LABEL: llvm.func @small
// CHECK: llvm.mlir.addressof @__wg_small_0
// CHECK-LABEL: llvm.func @large
// CHECK: llvm.getelementptr %{{.*}}[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK: llvm.getelementptr %{{.*}}[40960] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK-LABEL: llvm.func @behind
// CHECK: llvm.getelementptr %{{.*}}[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8

// The dynamic bytes of the kernel's own, 64 of them, come first.
// CHECK-LABEL: func.func @host
// CHECK: gpu.launch_func @m::@small {{.*}}threads in (%{{.*}}) args(
// CHECK: %[[LARGE:.*]] = arith.constant 81920 : i32
// CHECK: gpu.launch_func @m::@large {{.*}}dynamic_shared_memory_size %[[LARGE]]
// CHECK: %[[BOTH:.*]] = arith.constant 65664 : i32
// CHECK: gpu.launch_func @m::@behind {{.*}}dynamic_shared_memory_size %[[BOTH]]

// PTX: .extern .shared .align 1024 .b8 __dynamic_shmem__0[];
// PTX: .shared .align 16 .b8 __wg_small_0[64];
// PTX-NOT: .shared .align

#space = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @m {
    memref.global "private" @tile : memref<10240xf32, #space>

    gpu.func @small(%a: memref<16xf32>) workgroup(%s: memref<16xf32, #space>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %a[%t] : memref<16xf32>
      memref.store %v, %s[%t] : memref<16xf32, #space>
      gpu.barrier
      %c15 = arith.constant 15 : index
      %r = arith.subi %c15, %t : index
      %w = memref.load %s[%r] : memref<16xf32, #space>
      memref.store %w, %a[%t] : memref<16xf32>
      gpu.return
    }

    gpu.func @large(%a: memref<16xf32>) workgroup(%s: memref<80x128xf32, #space>) kernel {
      %t = gpu.thread_id x
      %g = memref.get_global @tile : memref<10240xf32, #space>
      %v = memref.load %a[%t] : memref<16xf32>
      memref.store %v, %s[%t, %t] : memref<80x128xf32, #space>
      memref.store %v, %g[%t] : memref<10240xf32, #space>
      gpu.barrier
      %c15 = arith.constant 15 : index
      %r = arith.subi %c15, %t : index
      %x = memref.load %s[%r, %r] : memref<80x128xf32, #space>
      %y = memref.load %g[%r] : memref<10240xf32, #space>
      %w = arith.addf %x, %y : f32
      memref.store %w, %a[%t] : memref<16xf32>
      gpu.return
    }

    gpu.func @behind(%a: memref<16xf32>) workgroup(%s: memref<16384xf32, #space>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %memory = gpu.dynamic_shared_memory : memref<?xi8, #space>
      %d = memref.view %memory[%c0][] : memref<?xi8, #space> to memref<16xf32, #space>
      %v = memref.load %a[%t] : memref<16xf32>
      memref.store %v, %d[%t] : memref<16xf32, #space>
      memref.store %v, %s[%t] : memref<16384xf32, #space>
      gpu.barrier
      %c15 = arith.constant 15 : index
      %r = arith.subi %c15, %t : index
      %x = memref.load %d[%r] : memref<16xf32, #space>
      %y = memref.load %s[%r] : memref<16384xf32, #space>
      %w = arith.addf %x, %y : f32
      memref.store %w, %a[%t] : memref<16xf32>
      gpu.return
    }
  }

  func.func @host(%a: memref<16xf32>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %bytes = arith.constant 64 : i32
    gpu.launch_func @m::@small blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%a : memref<16xf32>)
    gpu.launch_func @m::@large blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%a : memref<16xf32>)
    gpu.launch_func @m::@behind blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      dynamic_shared_memory_size %bytes args(%a : memref<16xf32>)
    return
  }
}
