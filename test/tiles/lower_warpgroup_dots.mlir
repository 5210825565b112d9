// A dot whose operand B is in shared memory is a group of wgmma: A from registers, B transposed.
// RUN: %legoc %s | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX

#X = #lego.layout<"OrderBy(Row(64, 32))">
#Y = #lego.layout<"OrderBy(Row(16, 32))">
#Z = #lego.layout<"OrderBy(Row(64, 16))">

#a = #lego.layout<"OrderBy(Row(4, 32, 16)).OrderBy(RegP([4, 2, 8, 4, 4, 2], [0, 2, 4, 3, 1, 5])).GroupBy([64, 32])">
#c = #lego.layout<"OrderBy(Row(4, 32, 8)).OrderBy(RegP([4, 2, 8, 2, 4, 2], [0, 2, 4, 3, 1, 5])).GroupBy([64, 16])">
#rows = #lego.layout<"OrderBy(Row(4, 32, 4)).GroupBy([16, 32])">

// The stores become visible to wgmma by a fence of every thread, and a barrier.
// CHECK-LABEL: func.func @chained(
// CHECK: vector.store
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: gpu.barrier
// CHECK: %[[B0:.*]] = arith.addi %{{.*}}, %c-9223371899415822336_i64 : i64
// The accumulator is zero: the first instruction defines it. The group is not waited for.
// CHECK: llvm.inline_asm has_side_effects "{
// CHECK-SAME: wgmma.fence.sync.aligned;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, $12, zero, 1, 1, 0;
// The descriptor of the second 16 of k begins 32 bytes behind the first one.
// CHECK-SAME: .reg .b64 at0;
// CHECK-SAME: add.s64 at0, $12, 2;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$13, $14, $15, $16}, at0, add, 1, 1, 0;
// CHECK-SAME: wgmma.commit_group.sync.aligned;
// CHECK-NOT: wait_group
// CHECK-SAME: "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&f,r,r,r,r,l,r,r,r,r"
// CHECK-SAME: %[[B0]]
// The second one adds to it, and is waited for.
// CHECK: llvm.inline_asm has_side_effects "{
// CHECK-SAME: {$16, $17, $18, $19}, $20, add, 1, 1, 0;
// CHECK-SAME: "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&f,0,1,2,3,4,5,6,7,r,r,r,r,l,r,r,r,r"
// CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;"
// CHECK-NOT: "lego.
// PTX: st.shared.v2.b32
// PTX: fence.proxy.async.shared::cta;
// PTX: bar.sync
// PTX: wgmma.fence.sync.aligned;
// PTX-NOT: mov
// PTX: wgmma.commit_group.sync.aligned;
// PTX: wgmma.commit_group.sync.aligned;
// PTX: wgmma.wait_group.sync.aligned 0;
func.func @chained(%x: memref<2048xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                   %y: memref<512xf16> {lego.layout = #Y, lego.alignment = 16 : i64},
                   %z: memref<1024xf32> {lego.layout = #Z, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c128, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<2048xf16>, index, index) -> tensor<64x32xf16, #a>
    %w = "lego.load"(%y, %c0, %c0) {layout = #Y, slice = array<i64: 0, 1>}
        : (memref<512xf16>, index, index) -> tensor<16x32xf16, #rows>
    %s = "lego.convert"(%w) : (tensor<16x32xf16, #rows>)
        -> tensor<16x32xf16, #lego.shared<"OrderBy(GenP([16, 32], tma_swizzle(64, 2)))">>
    %k = "lego.transpose"(%s) {order = array<i64: 1, 0>}
        : (tensor<16x32xf16, #lego.shared<"OrderBy(GenP([16, 32], tma_swizzle(64, 2)))">>)
        -> tensor<32x16xf16, #lego.shared<"OrderBy(GenP([16, 32], tma_swizzle(64, 2))).OrderBy(Col(32, 16))">>
    %zero = arith.constant dense<0.0> : tensor<64x16xf32, #c>
    %d = "lego.dot_async"(%v, %k, %zero)
        : (tensor<64x32xf16, #a>, tensor<32x16xf16, #lego.shared<"OrderBy(GenP([16, 32], tma_swizzle(64, 2))).OrderBy(Col(32, 16))">>, tensor<64x16xf32, #c>)
        -> tensor<64x16xf32, #c>
    %e = "lego.dot_async"(%v, %k, %d)
        : (tensor<64x32xf16, #a>, tensor<32x16xf16, #lego.shared<"OrderBy(GenP([16, 32], tma_swizzle(64, 2))).OrderBy(Col(32, 16))">>, tensor<64x16xf32, #c>)
        -> tensor<64x16xf32, #c>
    %f = "lego.dot_wait"(%e) {pending = 0 : i64} : (tensor<64x16xf32, #c>) -> tensor<64x16xf32, #c>
    "lego.store"(%f, %z, %c0, %c0) {layout = #Z, slice = array<i64: 0, 1>}
        : (tensor<64x16xf32, #c>, memref<1024xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
