// lego.load_parts and lego.store_parts: vectors of memory with one computed offset.
// RUN: %legoc %s | FileCheck %s
// RUN: %legoc %s --emit=ptx | FileCheck %s --check-prefix=PTX

#rows = #lego.layout<"OrderBy(Row(8, 4096))">
#odd = #lego.layout<"OrderBy(Row(8, 1000))">
#columns = #lego.layout<"OrderBy(Col(64, 64))">
#swizzled = #lego.layout<"OrderBy(GenP([64, 64], swizzle(8, 1, 8)))">

// A row of 4096 elements: 4 accesses of 16 bytes, and one address.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[AT:.*]] = affine.apply
// CHECK-NEXT: %[[V0:.*]] = vector.load %{{.*}}[%[[AT]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[AT1:.*]] = arith.addi %[[AT]], %c1024 overflow<nsw> : index
// CHECK-NEXT: vector.load %{{.*}}[%[[AT1]]] {alignment = 16 : i64}
// CHECK-COUNT-2: vector.load
// CHECK-NOT: load
// CHECK: vector.store %[[V0]], %{{.*}}[%[[AT]]] {alignment = 16 : i64}
// CHECK-COUNT-3: vector.store
// CHECK-NOT: store
// CHECK: gpu.terminator
// PTX: .entry rows_kernel
// PTX: ld.global.v4.b32 {{.*}}, [[[X:%rd[0-9]+]]];
// PTX-NEXT: ld.global.v4.b32 {{.*}}, [[[X]]+4096];
// PTX-NEXT: ld.global.v4.b32 {{.*}}, [[[X]]+8192];
// PTX-NEXT: ld.global.v4.b32 {{.*}}, [[[X]]+12288];
// PTX: st.global.v4.b32 [[[Y:%rd[0-9]+]]], {{.*}};
// PTX-NEXT: st.global.v4.b32 [[[Y]]+4096], {{.*}};
func.func @rows(%x: memref<32768xf32> {lego.alignment = 16 : i64},
                %y: memref<32768xf32> {lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c256, %tyy = %c1, %tzz = %c1) {
    %j = arith.muli %t, %c4 : index
    %p:4 = "lego.load_parts"(%x, %b, %j) {layout = #rows,
        registers = array<i64: 1, 4, 1024, 1, 4, 1>, operandSegmentSizes = array<i32: 1, 2, 0>}
        : (memref<32768xf32>, index, index)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
    "lego.store_parts"(%y, %b, %j, %p#0, %p#1, %p#2, %p#3) {layout = #rows,
        registers = array<i64: 1, 4, 1024, 1, 4, 1>, operandSegmentSizes = array<i32: 1, 2, 4, 0>}
        : (memref<32768xf32>, index, index, vector<4xf32>, vector<4xf32>, vector<4xf32>,
           vector<4xf32>) -> ()
    gpu.terminator
  }
  return
}

// Rows of 1000 elements, of which a thread of 64 has 4 times 4: only the last ones may not exist,
// and 4 divides 1000, so those of one access exist together.
// CHECK-LABEL: func.func @odd(
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c232 : index
// CHECK-COUNT-3: vector.load
// CHECK: scf.if %[[INSIDE]] -> (vector<4xf32>) {
// CHECK-NEXT: arith.addi
// CHECK-NEXT: vector.load
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %cst : vector<4xf32>
// CHECK: gpu.terminator
func.func @odd(%x: memref<8000xf32> {lego.alignment = 16 : i64},
               %y: memref<8192xf32> {lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %j = arith.muli %t, %c4 : index
    %p:4 = "lego.load_parts"(%x, %b, %j) {layout = #odd, other = -1.0 : f32,
        registers = array<i64: 1, 4, 256, 1, 4, 1>, operandSegmentSizes = array<i32: 1, 2, 0>}
        : (memref<8000xf32>, index, index)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
    "lego.store_parts"(%y, %b, %j, %p#0, %p#1, %p#2, %p#3) {
        layout = #lego.layout<"OrderBy(Row(8, 1024))">,
        registers = array<i64: 1, 4, 256, 1, 4, 1>, operandSegmentSizes = array<i32: 1, 2, 4, 0>}
        : (memref<8192xf32>, index, index, vector<4xf32>, vector<4xf32>, vector<4xf32>,
           vector<4xf32>) -> ()
    gpu.terminator
  }
  return
}

// Registers that are neighbours in memory, whatever their order: an access is wider than the parts.
// CHECK-LABEL: func.func @columns(
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<4096xf16>, vector<8xf16>
// CHECK-NOT: load
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<4096xf16>, vector<8xf16>
// CHECK-NOT: store
// CHECK: gpu.terminator
func.func @columns(%x: memref<4096xf16> {lego.alignment = 16 : i64},
                   %y: memref<4096xf16> {lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c64, %tyy = %c1, %tzz = %c1) {
    %i = arith.muli %b, %c8 : index
    %p:2 = "lego.load_parts"(%x, %i, %t) {layout = #columns,
        registers = array<i64: 0, 4, 2, 0, 2, 1>, operandSegmentSizes = array<i32: 1, 2, 0>}
        : (memref<4096xf16>, index, index) -> (vector<4xf16>, vector<4xf16>)
    "lego.store_parts"(%y, %t, %i, %p#0, %p#1) {layout = #lego.layout<"OrderBy(Row(64, 64))">,
        registers = array<i64: 1, 4, 2, 1, 2, 1>, operandSegmentSizes = array<i32: 1, 2, 2, 0>}
        : (memref<4096xf16>, index, index, vector<4xf16>, vector<4xf16>) -> ()
    gpu.terminator
  }
  return
}

// A mask that compares indices with a number that 4 divides is one for each vector.
// CHECK-LABEL: func.func @masked(
// CHECK: scf.if
// CHECK-NEXT: vector.load {{.*}} vector<4xf32>
// CHECK-NOT: memref.load
// CHECK: gpu.terminator
func.func @masked(%x: memref<4096xf32> {lego.alignment = 16 : i64},
                  %y: memref<4096xf32> {lego.alignment = 16 : i64}) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %c16, %tyy = %c1, %tzz = %c1) {
    %j = arith.muli %t, %c4 : index
    %first = arith.index_cast %j : index to i32
    %all = vector.broadcast %first : i32 to vector<4xi32>
    %digits = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
    %at = arith.addi %all, %digits : vector<4xi32>
    %limit = arith.constant dense<36> : vector<4xi32>
    %mask = arith.cmpi slt, %at, %limit : vector<4xi32>
    %p = "lego.load_parts"(%x, %b, %j, %mask) {layout = #swizzled,
        registers = array<i64: 1, 4, 1>, operandSegmentSizes = array<i32: 1, 2, 1>}
        : (memref<4096xf32>, index, index, vector<4xi1>) -> vector<4xf32>
    "lego.store_parts"(%y, %b, %j, %p) {layout = #swizzled,
        registers = array<i64: 1, 4, 1>, operandSegmentSizes = array<i32: 1, 2, 1, 0>}
        : (memref<4096xf32>, index, index, vector<4xf32>) -> ()
    gpu.terminator
  }
  return
}
