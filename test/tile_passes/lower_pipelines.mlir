// A ring becomes stages in shared memory with an mbarrier each for full and empty ones, and its
// copies become TMA. Roles become branches on the warp; the role that only copies runs in one thread.
// RUN: %legoc %s --emit=index | FileCheck %s
// RUN: %legoc %s --check-each-step | FileCheck %s --check-prefix=STEPS

// CHECK:      "lego.tensor_map"(%arg0) {box = array<i64: 64, 64>{{.*}}swizzle = 128
// CHECK:      gpu.launch
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK:      nvvm.fence.mbarrier.init
// CHECK:      gpu.barrier
// CHECK:      nvvm.shfl.sync
// CHECK:      scf.if
// CHECK-NEXT: nvvm.setmaxregister decrease 240
// CHECK:      scf.for %[[I:.*]] =
// CHECK:      nvvm.mbarrier.try_wait.parity
// CHECK:      vector.load
// CHECK:      nvvm.bar.warp.sync
// CHECK-NEXT: %[[LANE:.*]] = nvvm.elect.sync
// CHECK-NEXT: scf.if %[[LANE]]
// CHECK:      nvvm.mbarrier.arrive %
// CHECK:      vector.store
// CHECK:      nvvm.setmaxregister decrease 40
// CHECK:      nvvm.elect.sync
// CHECK:      scf.for
// CHECK:      nvvm.mbarrier.try_wait.parity
// CHECK:      nvvm.mbarrier.arrive.expect_tx {{.*}}, %c8192_i32
// CHECK-NOT:  scf.if
// CHECK:      nvvm.cp.async.bulk.tensor.shared.cluster.global
// STEPS:      lowering, run in the simulator (random): every element is the same
#A = #lego.layout<"OrderBy(Row(256, 64))">
#S = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#D = #lego.layout<"OrderBy(Row(4, 32, 32)).OrderBy(RegP([4, 4, 4, 8, 8], [1, 2, 3, 0, 4])).GroupBy([64, 64])">
func.func @main(%a: memref<16384xf16> {lego.layout = #A, lego.alignment = 16 : i64, lego.name = "a"},
                %b: memref<16384xf16> {lego.layout = #A, lego.alignment = 16 : i64, lego.name = "b"}) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %ring = "lego.make_ring"() : () -> !lego.ring<2 : i64, tensor<64x64xf16, #S>>
    "lego.role"() ({
      scf.for %i = %c0 to %c4 step %one {
        %row = arith.muli %i, %c64 : index
        %t = "lego.wait"(%ring, %i) : (!lego.ring<2 : i64, tensor<64x64xf16, #S>>, index) -> tensor<64x64xf16, #S>
        %x = "lego.convert"(%t) : (tensor<64x64xf16, #S>) -> tensor<64x64xf16, #D>
        "lego.release"(%ring, %i) : (!lego.ring<2 : i64, tensor<64x64xf16, #S>>, index) -> ()
        %y = arith.addf %x, %x : tensor<64x64xf16, #D>
        "lego.store"(%y, %b, %row, %c0) {layout = #A, slice = array<i64: 0, 1>} : (tensor<64x64xf16, #D>, memref<16384xf16>, index, index) -> ()
      }
      gpu.yield
    }) {name = "consumer", first_warp = 0 : i64, warps = 4 : i64, registers = 240 : i64} : () -> ()
    "lego.role"() ({
      scf.for %i = %c0 to %c4 step %one {
        %row = arith.muli %i, %c64 : index
        "lego.acquire"(%ring, %i) : (!lego.ring<2 : i64, tensor<64x64xf16, #S>>, index) -> ()
        "lego.copy_async"(%ring, %i, %a, %row, %c0) {layout = #A, slice = array<i64: 0, 1>, engine = "tma"} : (!lego.ring<2 : i64, tensor<64x64xf16, #S>>, index, memref<16384xf16>, index, index) -> ()
        "lego.commit"(%ring, %i) : (!lego.ring<2 : i64, tensor<64x64xf16, #S>>, index) -> ()
      }
      gpu.yield
    }) {name = "producer", first_warp = 4 : i64, warps = 4 : i64, registers = 40 : i64} : () -> ()
    gpu.terminator
  } {lego.tile_warps = 4 : i64}
  return
}
