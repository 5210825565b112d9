// Three pieces of a row pass through one ring: they are copied and waited for at once, and each is read by
// itself. Each CTA of a cluster has its slice of each piece. The last piece extends past the row's end.
// RUN: %legoc %s --schedule=streamed --emit=placed | FileCheck %s
// RUN: %legoc %s --schedule=streamed --emit=index | FileCheck %s --check-prefix=INDEX
// RUN: %legoc %s --schedule=streamed --check-each-step | FileCheck %s --check-prefix=STEPS

#X = #lego.layout<"OrderBy(Row(8, 640))">
func.func @center(%x: memref<5120xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                  %w: memref<5120xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                  %y: memref<5120xf32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %four, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    %cluster = "gpu.cluster_id"() {dimension = #gpu<dim x>} : () -> index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = arith.muli %i, %c2 : index
      %row = arith.addi %before, %cluster : index
      %a = "lego.load"(%x, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<5120xf16>, index, index) -> tensor<1x256xf16>
      %u = "lego.load"(%w, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<5120xf16>, index, index) -> tensor<1x256xf16>
      %b = "lego.load"(%x, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<5120xf16>, index, index) -> tensor<1x256xf16>
      %v = "lego.load"(%w, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<5120xf16>, index, index) -> tensor<1x256xf16>
      %c = "lego.load"(%x, %row, %c512) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<5120xf16>, index, index) -> tensor<1x256xf16>
      %z = "lego.load"(%w, %row, %c512) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<5120xf16>, index, index) -> tensor<1x256xf16>
      %f = "lego.fill"(%c) {value = 0.0 : f16} : (tensor<1x256xf16>) -> tensor<1x256xf16>
      %ab = arith.addf %a, %b : tensor<1x256xf16>
      %abc = arith.addf %ab, %f : tensor<1x256xf16>
      %sum = arith.extf %abc : tensor<1x256xf16> to tensor<1x256xf32>
      %s = "lego.reduce"(%sum) {kind = "add", dim = 1 : i64} : (tensor<1x256xf32>) -> tensor<1x1xf32>
      %all = "lego.broadcast"(%s) : (tensor<1x1xf32>) -> tensor<1x256xf32>
      %au = arith.mulf %a, %u : tensor<1x256xf16>
      %wa = arith.extf %au : tensor<1x256xf16> to tensor<1x256xf32>
      %da = arith.subf %wa, %all : tensor<1x256xf32>
      "lego.store"(%da, %y, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<5120xf32>, index, index) -> ()
      %bv = arith.mulf %b, %v : tensor<1x256xf16>
      %wb = arith.extf %bv : tensor<1x256xf16> to tensor<1x256xf32>
      %db = arith.subf %wb, %all : tensor<1x256xf32>
      "lego.store"(%db, %y, %row, %c256) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<5120xf32>, index, index) -> ()
      %cz = arith.mulf %c, %z : tensor<1x256xf16>
      %wc = arith.extf %cz : tensor<1x256xf16> to tensor<1x256xf32>
      %dc = arith.subf %wc, %all : tensor<1x256xf32>
      "lego.store"(%dc, %y, %row, %c512) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x256xf32>, memref<5120xf32>, index, index) -> ()
    }
    gpu.terminator
  } {lego.cluster = 2 : i64}
  return
}

// CHECK:      %[[X:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3 : i64, tensor<3x256xf16, #lego.shared<"OrderBy(Row(3, 128))">>>
// CHECK-NEXT: %[[W:[^ ]+]] = "lego.make_ring"() : () -> !lego.ring<3 : i64, tensor<3x256xf16, #lego.shared<"OrderBy(Row(3, 128))">>>
// CHECK-NOT:  "lego.make_ring"
// CHECK:      "lego.copy_async"(%[[X]], {{.*}}"OrderBy(Row(8, 640)).Window([8, 3, 640], (d0, d1, d2) -> (d0, 256*d1 + d2), zero)">, slice = array<i64: 1, 2>}
// CHECK:      "lego.copy_async"(%[[W]],
// CHECK:      scf.for %[[I:[^ ]+]] =
// CHECK:      %[[T:[^ ]+]] = "lego.wait"(%[[X]], %[[I]])
// CHECK-NEXT: %[[U:[^ ]+]] = "lego.wait"(%[[W]], %[[I]])
// CHECK-DAG:  "lego.extract_slice"(%[[T]]) {offsets = array<i64: 0, 0>}
// CHECK-DAG:  "lego.extract_slice"(%[[T]]) {offsets = array<i64: 1, 0>}
// CHECK-DAG:  "lego.extract_slice"(%[[T]]) {offsets = array<i64: 2, 0>}
// CHECK-DAG:  "lego.extract_slice"(%[[U]]) {offsets = array<i64: 2, 0>}

// The copies of both tiles alternate, piece by piece.
// INDEX:      nvgpu.device_async_copy %[[A:[a-z0-9_]+]][
// INDEX:      nvgpu.device_async_copy %[[B:[a-z0-9_]+]][
// INDEX:      nvgpu.device_async_copy %[[A]][
// INDEX:      nvgpu.device_async_copy %[[B]][
// INDEX:      nvgpu.device_async_copy %[[A]][
// INDEX:      nvgpu.device_async_copy %[[B]][
// INDEX:      scf.for

// STEPS:      the schedule: {{every element is the same|the largest error}}
// STEPS:      lowering, run in the simulator (random): {{every element is the same|the largest error}}
