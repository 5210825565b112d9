// Tiles become the registers of threads: one operation of each kind.
// RUN: %legoc %s | FileCheck %s

#X = #lego.layout<"OrderBy(Row(8, 256))">
#R = #lego.layout<"OrderBy(Row(8, 1))">
#I = #lego.layout<"OrderBy(Row(256))">

// Two warps have a row each: 8 registers a thread, in parts of 4.
#rows = #lego.layout<"OrderBy(Row(2, 32, 8)).OrderBy(RegP([2, 2, 32, 4], [0, 2, 1, 3])).GroupBy([2, 256])">
#vectors = #lego.layout<"OrderBy(Row(2, 32, 8)).GroupBy([2, 256])">
#row = #lego.layout<"OrderBy(Row(2, 32, 1)).GroupBy([2, 1, 32])">

// Loads and stores are of 4 elements; the sum of a row is added by parts, then inside of a part,
// then over the lanes; what is broadcast is one value for all registers.
// CHECK-LABEL: func.func @reduce(
// CHECK: %[[A:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<2048xf32>, vector<4xf32>
// CHECK: %[[B:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<2048xf32>, vector<4xf32>
// CHECK: %[[V:.*]] = arith.addf %[[A]], %[[B]] : vector<4xf32>
// CHECK: %[[E:.*]]:4 = vector.to_elements %[[V]] : vector<4xf32>
// CHECK: %[[E0:.*]] = arith.addf %[[E]]#0, %[[E]]#1 : f32
// CHECK: %[[E1:.*]] = arith.addf %[[E]]#2, %[[E]]#3 : f32
// CHECK: %[[S:.*]] = arith.addf %[[E0]], %[[E1]] : f32
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: %[[W:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
// CHECK-DAG: arith.divf %[[A]], %[[W]] : vector<4xf32>
// CHECK-DAG: arith.divf %[[B]], %[[W]] : vector<4xf32>
// CHECK-NOT: gpu.barrier
func.func @reduce(%x: memref<2048xf32> {lego.layout = #X, lego.alignment = 16 : i64},
                  %y: memref<2048xf32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %i = arith.muli %b, %c2 : index
    %v = "lego.load"(%x, %i, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<2048xf32>, index, index) -> tensor<2x256xf32, #rows>
    %s = "lego.reduce"(%v) {kind = "add", dim = 1 : i64}
        : (tensor<2x256xf32, #rows>) -> tensor<2x1xf32, #row>
    %w = "lego.broadcast"(%s) : (tensor<2x1xf32, #row>) -> tensor<2x256xf32, #rows>
    %r = arith.divf %v, %w : tensor<2x256xf32, #rows>
    "lego.store"(%r, %y, %i, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<2x256xf32, #rows>, memref<2048xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}

// The greatest of extended numbers is that of the shorter ones, which an instruction combines in
// pairs; lanes combine what is extended.
// CHECK-LABEL: func.func @greatest(
// CHECK: %[[A:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [4]
// CHECK: %[[B:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [4], sizes = [4]
// CHECK: %[[V:.*]] = arith.maximumf %[[A]], %[[B]] : vector<4xbf16>
// CHECK: %[[LOW:.*]] = vector.extract_strided_slice %[[V]] {offsets = [0], sizes = [2]
// CHECK: %[[HIGH:.*]] = vector.extract_strided_slice %[[V]] {offsets = [2], sizes = [2]
// CHECK: %[[P:.*]] = arith.maximumf %[[LOW]], %[[HIGH]] : vector<2xbf16>
// CHECK: %[[E:.*]]:2 = vector.to_elements %[[P]] : vector<2xbf16>
// CHECK: %[[S:.*]] = arith.maximumf %[[E]]#0, %[[E]]#1 : bf16
// CHECK: %[[W:.*]] = arith.extf %[[S]] : bf16 to f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[W]] : f32 to i32
// CHECK: gpu.shuffle xor %[[BITS]]
// CHECK: arith.maximumf %{{.*}} : f32
func.func @greatest(%x: memref<2048xbf16> {lego.layout = #X, lego.alignment = 16 : i64},
                    %y: memref<8xf32> {lego.layout = #R}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %i = arith.muli %b, %c2 : index
    %v = "lego.load"(%x, %i, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<2048xbf16>, index, index) -> tensor<2x256xbf16, #vectors>
    %w = arith.extf %v : tensor<2x256xbf16, #vectors> to tensor<2x256xf32, #vectors>
    %s = "lego.reduce"(%w) {kind = "max", dim = 1 : i64}
        : (tensor<2x256xf32, #vectors>) -> tensor<2x1xf32, #row>
    "lego.store"(%s, %y, %i, %c0) {layout = #R, slice = array<i64: 0, 1>}
        : (tensor<2x1xf32, #row>, memref<8xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}

// All lanes of a warp hold a row's sum, and the first one stores it. Integers are reduced over the
// warp by one operation.
// CHECK-LABEL: func.func @copies(
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: gpu.subgroup_reduce  maxsi %{{.*}} uniform : (i32) -> i32
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: memref.store
func.func @copies(%x: memref<2048xi32> {lego.layout = #X, lego.alignment = 16 : i64},
                  %y: memref<8xi32> {lego.layout = #R}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<2048xi32>, index, index) -> tensor<2x256xi32, #rows>
    %s = "lego.reduce"(%v) {kind = "max", dim = 1 : i64}
        : (tensor<2x256xi32, #rows>) -> tensor<2x1xi32, #row>
    "lego.store"(%s, %y, %c0, %c0) {layout = #R, slice = array<i64: 0, 1>}
        : (tensor<2x1xi32, #row>, memref<8xi32>, index, index) -> ()
    gpu.terminator
  }
  return
}

#lanes = #lego.layout<"OrderBy(Row(1, 32, 8)).GroupBy([256])">
#spread = #lego.layout<"OrderBy(Row(1, 32, 8)).OrderBy(RegP([4, 16, 2, 2], [1, 2, 0, 3])).GroupBy([256])">

// An index is the thread's first one and a constant a register; a loop carries parts.
// CHECK-LABEL: func.func @loop(
// CHECK-DAG: %[[HIGH:.*]] = arith.constant dense<[4, 5, 6, 7]> : vector<4xi32>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<4xi32>, vector<4xi32>)
// CHECK-COUNT-2: arith.addi %{{.*}} : vector<4xi32>
// CHECK: scf.yield %{{.*}}, %{{.*}} : vector<4xi32>, vector<4xi32>
func.func @loop(%y: memref<256xi32> {lego.layout = #I, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %i = "lego.iota"() {dim = 0 : i64} : () -> tensor<256xi32, #lanes>
    %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %i) -> (tensor<256xi32, #lanes>) {
      %n = arith.addi %a, %i : tensor<256xi32, #lanes>
      scf.yield %n : tensor<256xi32, #lanes>
    }
    "lego.store"(%r, %y, %c0) {layout = #I, slice = array<i64: 0>}
        : (tensor<256xi32, #lanes>, memref<256xi32>, index) -> ()
    gpu.terminator
  }
  return
}

// Lanes exchange registers: each chooses what it sends, and where it puts what it gets.
// CHECK-LABEL: func.func @exchange(
// CHECK: arith.select
// CHECK: gpu.shuffle
// CHECK: arith.select
// CHECK-NOT: workgroup(
func.func @exchange(%x: memref<256xi32> {lego.layout = #I, lego.alignment = 16 : i64},
                    %y: memref<256xi32> {lego.layout = #I, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0) {layout = #I, slice = array<i64: 0>}
        : (memref<256xi32>, index) -> tensor<256xi32, #lanes>
    %r = "lego.convert"(%v) : (tensor<256xi32, #lanes>) -> tensor<256xi32, #spread>
    "lego.store"(%r, %y, %c0) {layout = #I, slice = array<i64: 0>}
        : (tensor<256xi32, #spread>, memref<256xi32>, index) -> ()
    gpu.terminator
  }
  return
}

// A scan goes from registers to lanes; each lane that comes later adds what the other one has.
// CHECK-LABEL: func.func @scan(
// CHECK: gpu.shuffle xor
// CHECK: arith.select
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
func.func @scan(%x: memref<256xi32> {lego.layout = #I, lego.alignment = 16 : i64},
                %y: memref<256xi32> {lego.layout = #I, lego.alignment = 16 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c32, %tyy = %c1, %tzz = %c1) {
    %v = "lego.load"(%x, %c0) {layout = #I, slice = array<i64: 0>}
        : (memref<256xi32>, index) -> tensor<256xi32, #lanes>
    %r = "lego.scan"(%v) {kind = "add", dim = 0 : i64}
        : (tensor<256xi32, #lanes>) -> tensor<256xi32, #lanes>
    "lego.store"(%r, %y, %c0) {layout = #I, slice = array<i64: 0>}
        : (tensor<256xi32, #lanes>, memref<256xi32>, index) -> ()
    gpu.terminator
  }
  return
}
