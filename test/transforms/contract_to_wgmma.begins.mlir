// The step contract_to_wgmma where accumulators begin at zero under a condition: an operand of the instruction,
// and what a loop carries before that need not be anything.
// RUN: %legoc %s --schedule=%S/Inputs/contract_to_wgmma.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/01-contract_to_wgmma.mlir | FileCheck %s
// RUN: %legoc %s --schedule=%S/Inputs/contract_to_wgmma.mlir --emit=ptx | FileCheck %s --check-prefix=PTX

#A = #lego.layout<"OrderBy(Row(3), GenP([64, 64], tma_swizzle(128, 2)))">
#B = #lego.layout<"OrderBy(Row(3), GenP([64, 16], tma_swizzle(32, 2)))">
#C = #lego.layout<"OrderBy(Row(64, 16))">
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
         affine_map<(i, j, k) -> (i, j)>]

// CHECK-LABEL: func.func @gemm
func.func @gemm(%c: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = "lego.alloc"() {layout = #A} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %b = "lego.alloc"() {layout = #B} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %zeros = arith.constant dense<0.0> : vector<64x16xf32>
    %nothing = ub.poison : vector<64x16xf32>
    // CHECK: %[[NONE:[0-9]+]] = llvm.mlir.undef
    // CHECK: scf.for {{.*}} iter_args(%[[PART:[a-z0-9]+]] = %[[NONE]])
    %sum = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %nothing) -> (vector<64x16xf32>) {
      // CHECK: %[[FIRST:[0-9]+]] = arith.cmpi eq
      %first = arith.cmpi eq, %k, %c0 : index
      // CHECK: %[[ADDS:[0-9]+]] = arith.select %[[FIRST]], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : i32
      // CHECK: llvm.inline_asm has_side_effects
      // CHECK-SAME: setp.ne.b32 begin, $24, 0;
      // CHECK-SAME: $16, $17, begin, 1, 1, 0, 1;
      // CHECK-SAME: $18, $19, add, 1, 1, 0, 1;
      // CHECK-SAME: %[[ADDS]] :
      %before = arith.select %first, %zeros, %acc : vector<64x16xf32>
      %x = "lego.load"(%a, %k) {layout = #A, slice = array<i64: 1, 2>}
          : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<64x64xf16>
      %y = "lego.load"(%b, %k) {layout = #B, slice = array<i64: 1, 2>}
          : (memref<?xf16, #gpu.address_space<workgroup>>, index) -> vector<64x16xf16>
      %next = vector.contract {indexing_maps = #maps,
          iterator_types = ["parallel", "parallel", "reduction"],
          lego.warps = #lego.layout<"OrderBy(Row(4, 1))">}
          %x, %y, %before : vector<64x64xf16>, vector<64x16xf16> into vector<64x16xf32>
      nvvm.wgmma.wait.group.sync.aligned 0
      // CHECK: scf.yield
      scf.yield %next : vector<64x16xf32>
    }
    "lego.store"(%sum, %c) {layout = #C, slice = array<i64: 0, 1>}
        : (vector<64x16xf32>, memref<1024xf32>) -> ()
    gpu.terminator
  }
  return
}

// Registers are not set before the loop.
// PTX-NOT: mov.b32 {{.*}}, 0f00000000
// PTX: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
