// ptx.pipeline: every kernel of the module in one PTX text, for the target.
// RUN: %legoc %s --emit=ptx --target=sm_80 > %t
// RUN: FileCheck %s < %t
// RUN: %legoc %s --emit=ptx --target=sm_80 --pass-pipeline ptx=%pipelines/ptx.pipeline | cmp %t -

// CHECK: .version
// CHECK: .target sm_80
// CHECK-NOT: .version
// CHECK: .visible .entry first(
// CHECK: st.global.b32
// CHECK: ret;
// CHECK: .visible .entry second(
// CHECK: st.global.b16
// CHECK: ret;
module attributes {gpu.container_module} {
  gpu.module @one {
    gpu.func @first(%out: memref<32xf32>) kernel {
      %x = gpu.thread_id x
      %zero = arith.constant 0.0 : f32
      "lego.store"(%zero, %out, %x) {layout = #lego.layout<"OrderBy(Row(32))">} : (f32, memref<32xf32>, index) -> ()
      gpu.return
    }
  }
  gpu.module @two {
    gpu.func @second(%out: memref<32xf16>) kernel {
      %x = gpu.thread_id x
      %zero = arith.constant 0.0 : f16
      "lego.store"(%zero, %out, %x) {layout = #lego.layout<"OrderBy(Row(32))">} : (f16, memref<32xf16>, index) -> ()
      gpu.return
    }
  }
}
