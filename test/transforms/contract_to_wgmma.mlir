// The step contract_to_wgmma: a contraction of tiles in shared memory, lowered.
// RUN: %legoc %s --schedule=%S/Inputs/contract_to_wgmma.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/01-contract_to_wgmma.mlir | FileCheck %s

#A = #lego.layout<"OrderBy(Row(3), GenP([128, 64], tma_swizzle(128, 2)))">
#B = #lego.layout<"OrderBy(Row(3), GenP([64, 16], tma_swizzle(32, 2)))">
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
         affine_map<(i, j, k) -> (i, j)>]

// CHECK-LABEL: func.func @gemm
func.func @gemm(%c: memref<4096xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // Who the thread is: its warpgroup, warp and lane, and where in the accumulator that is.
    // CHECK: "lego.inv"{{.*}}"OrderBy(Row(1, 4, 32))"
    // CHECK: "lego.inv"{{.*}}"OrderBy(Row(8, 4))"
    // CHECK: %[[SA:[0-9]+]] = "lego.alloc"() {{.*}}, lego.alignment = 1024 : i64}
    // CHECK: %[[SB:[0-9]+]] = "lego.alloc"() {{.*}}, lego.alignment = 256 : i64}

    // What descriptors count from: addresses in units of 16 bytes.
    // CHECK: memref.extract_aligned_pointer_as_index %[[SA]]
    // CHECK: %[[A:[0-9]+]] = arith.extui
    // CHECK: memref.extract_aligned_pointer_as_index %[[SB]]
    // CHECK: %[[B:[0-9]+]] = arith.extui

    // Two blocks of 64 rows, four steps of 16 along k. The first step begins at zero. B's
    // descriptor: swizzle 32 (3 << 62), 512 bytes further a step. A's descriptor: swizzle 128
    // (1 << 62), stride 1024 (64 << 32), 32 bytes further a step.
    // CHECK-NEXT: nvvm.wgmma.fence.aligned
    // CHECK-NEXT: %[[WB0:[a-z0-9_-]+]] = arith.constant -4611685949707911168 : i64
    // CHECK-NEXT: %[[B0:[0-9]+]] = arith.addi %[[B]], %[[WB0]]
    // CHECK-NEXT: arith.constant -4611685949707911136 : i64
    // CHECK-NEXT: %[[B1:[0-9]+]] = arith.addi %[[B]],
    // CHECK: %[[WA0:[a-z0-9_]+]] = arith.constant 4611686293305294848 : i64
    // CHECK-NEXT: %[[A0:[0-9]+]] = arith.addi %[[A]], %[[WA0]]
    // CHECK-NEXT: arith.constant 4611686293305294850 : i64
    // CHECK-NEXT: %[[A1:[0-9]+]] = arith.addi %[[A]],
    // CHECK-NEXT: arith.constant 4611686293305294852 : i64
    // CHECK: arith.constant 4611686293305294854 : i64
    // CHECK: %[[D0:[0-9]+]] = llvm.inline_asm has_side_effects
    // CHECK-SAME: setp.ne.b32 add, 1, 0;
    // CHECK-SAME: setp.ne.b32 begin, 0, 0;
    // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {{{[$0-9, ]*}}}, $8, $9, begin, 1, 1, 0, 1;
    // CHECK-SAME: {{{[$0-9, ]*}}}, $10, $11, add, 1, 1, 0, 1;
    // CHECK-SAME: {{{[$0-9, ]*}}}, $12, $13, add,
    // CHECK-SAME: {{{[$0-9, ]*}}}, $14, $15, add,
    // CHECK-SAME: "=f,=f,=f,=f,=f,=f,=f,=f,l,l,l,l,l,l,l,l" %[[A0]], %[[B0]], %[[A1]], %[[B1]],
    // The second block lies 64 rows of 128 bytes further: 512 units.
    // CHECK-NEXT: arith.constant 4611686293305295360 : i64
    // CHECK: %[[D1:[0-9]+]] = llvm.inline_asm {{.*}}begin{{.*}}, %[[B0]], {{.*}}, %[[B1]],
    // CHECK-NEXT: nvvm.wgmma.commit.group.sync.aligned

    // The loop carries the sums of each block as the instructions leave them.
    // CHECK-NEXT: scf.for {{.*}} iter_args(%[[S0:[a-z0-9]+]] = %[[D0]], %[[S1:[a-z0-9]+]] = %[[D1]])
    // CHECK: nvvm.wgmma.fence.aligned
    // CHECK: llvm.extractvalue %[[S0]][0]
    // CHECK: llvm.extractvalue %[[S0]][7]
    // CHECK-NOT: begin
    // CHECK: %[[N0:[0-9]+]] = llvm.inline_asm {{.*}}"=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,l,
    // CHECK: llvm.extractvalue %[[S1]][7]
    // CHECK-NOT: begin
    // CHECK: %[[N1:[0-9]+]] = llvm.inline_asm
    // CHECK: nvvm.wgmma.commit.group.sync.aligned
    // CHECK: nvvm.wgmma.wait.group.sync.aligned 0
    // CHECK: scf.yield %[[N0]], %[[N1]]

    // What follows is done by each thread on what it holds.
    // CHECK-NOT: vector<128x16xf32>
    // CHECK: arith.addf %{{.*}} : vector<2xf32>
    // CHECK: "lego.store"
    // CHECK-NOT: vector<128x16xf32>
    // CHECK: gpu.terminator
    %sa = "lego.alloc"() {layout = #A} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %sb = "lego.alloc"() {layout = #B} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %zero = arith.constant dense<0.0> : vector<128x16xf32>
    %x = "lego.load"(%sa, %c0) {layout = #A, slice = array<i64: 1, 2>}
        : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<128x64xf16>
    %y = "lego.load"(%sb, %c0) {layout = #B, slice = array<i64: 1, 2>}
        : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<64x16xf16>
    %first = vector.contract {indexing_maps = #maps,
        iterator_types = ["parallel", "parallel", "reduction"],
        lego.warps = #lego.layout<"OrderBy(Row(4, 1))">}
        %x, %y, %zero : vector<128x64xf16>, vector<64x16xf16> into vector<128x16xf32>
    %sum = scf.for %k = %c1 to %c4 step %c1 iter_args(%acc = %first) -> vector<128x16xf32> {
      %stage = arith.remui %k, %c2 : index
      %v = "lego.load"(%sa, %stage) {layout = #A, slice = array<i64: 1, 2>}
          : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<128x64xf16>
      %w = "lego.load"(%sb, %stage) {layout = #B, slice = array<i64: 1, 2>}
          : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<64x16xf16>
      %next = vector.contract {indexing_maps = #maps,
          iterator_types = ["parallel", "parallel", "reduction"],
          lego.warps = #lego.layout<"OrderBy(Row(4, 1))">}
          %v, %w, %acc : vector<128x64xf16>, vector<64x16xf16> into vector<128x16xf32>
      nvvm.wgmma.wait.group.sync.aligned 0
      scf.yield %next : vector<128x16xf32>
    }
    %result = arith.addf %sum, %sum : vector<128x16xf32>
    "lego.store"(%result, %c, %bx)
        {layout = #lego.layout<"OrderBy(Row(2, 128, 16))">, slice = array<i64: 1, 2>}
        : (vector<128x16xf32>, memref<4096xf32>, index) -> ()
    gpu.terminator
  }
  return
}
