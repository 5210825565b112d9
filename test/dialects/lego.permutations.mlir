// Permutations by name, and a user's own by a pair of functions.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<()[s0, s1] -> (s0 * 16 + s1)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<()[s0] -> (s0 * 2)>
// CHECK-DAG: #[[MAP2:.*]] = affine_map<()[s0, s1] -> (s0 * -8 - s1 + 31)>
// CHECK-DAG: #[[MAP3:.*]] = affine_map<()[s0] -> (-s0 + 255)>
// CHECK-DAG: #[[MAP5:.*]] = affine_map<()[s0, s1] -> (s0 - s1)>
// CHECK-DAG: #[[MAP6:.*]] = affine_map<()[s0, s1] -> (s0 - s1 + 1)>
// CHECK-DAG: #[[MAP7:.*]] = affine_map<()[s0, s1] -> (-s0 + s1)>
// CHECK-DAG: #[[MAP8:.*]] = affine_map<()[s0, s1] -> (s0 - s1 + 15)>
// CHECK-DAG: #[[MAP9:.*]] = affine_map<()[s0, s1] -> (s0 + s1)>
// CHECK-DAG: #[[MAP11:.*]] = affine_map<()[s0, s1] -> (s0 - s1 + 8)>

// CHECK-LABEL: func.func @swizzle(
// CHECK-SAME: %[[X:.*]]: index, %[[Y:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[X]], %c15
// CHECK-DAG: %[[V1:.*]] = arith.andi %[[Y]], %c15
// CHECK-DAG: %[[V2:.*]] = arith.xori %[[V0]], %[[V1]]
// CHECK-DAG: %[[V3:.*]] = affine.apply #[[MAP]]()[%[[V0]], %[[V2]]]
// CHECK: return %[[V3]], %[[V0]], %[[V1]] : index, index, index
func.func @swizzle(%x: index, %y: index) -> (index, index, index) {
  %c15 = arith.constant 15 : index
  %i = arith.andi %x, %c15 : index
  %j = arith.andi %y, %c15 : index
  %0 = "lego.apply"(%i, %j) {layout = #lego.layout<"OrderBy(GenP([16, 16], swizzle))">} : (index, index) -> index
  %1, %2 = "lego.inv"(%0) {layout = #lego.layout<"OrderBy(GenP([16, 16], swizzle))">} : (index) -> (index, index)
  return %0, %1, %2 : index, index, index
}

// Chunks of 4 elements stay together; two rows share a phase.
// CHECK-LABEL: func.func @swizzle_of_chunks(
// CHECK-SAME: %[[X:.*]]: index, %[[Y:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[X]], %c15
// CHECK-DAG: %[[V1:.*]] = arith.andi %[[Y]], %c15
// CHECK-DAG: %[[V2:.*]] = arith.andi %[[X]], %c6
// CHECK-DAG: %[[V3:.*]] = affine.apply #[[MAP1]]()[%[[V2]]]
// CHECK-DAG: %[[V4:.*]] = arith.xori %[[V1]], %[[V3]]
// CHECK-DAG: %[[V5:.*]] = affine.apply #[[MAP]]()[%[[V0]], %[[V4]]]
// CHECK: return %[[V5]]
func.func @swizzle_of_chunks(%x: index, %y: index) -> index {
  %c15 = arith.constant 15 : index
  %i = arith.andi %x, %c15 : index
  %j = arith.andi %y, %c15 : index
  %0 = "lego.apply"(%i, %j) {layout = #lego.layout<"OrderBy(GenP([16, 16], swizzle(4, 2)))">} : (index, index) -> index
  return %0 : index
}

// CHECK-LABEL: func.func @reverse(
// CHECK-SAME: %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG: %[[V0:.*]] = affine.apply #[[MAP2]]()[%[[I]], %[[J]]]
// CHECK: return %[[V0]]
func.func @reverse(%i: index, %j: index) -> index {
  %0 = "lego.apply"(%i, %j) {layout = #lego.layout<"OrderBy(GenP([4, 8], reverse))">} : (index, index) -> index
  return %0 : index
}

// Its square root is exact: single precision, and then one step up or down.
// CHECK-LABEL: func.func @antidiagonal(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.andi %[[X]], %c255
// CHECK-DAG: %[[V1:.*]] = arith.cmpi ult, %[[V0]], %c136
// CHECK-DAG: %[[V2:.*]] = affine.apply #[[MAP3]]()[%[[V0]]]
// CHECK-DAG: %[[V3:.*]] = arith.select %[[V1]], %[[V0]], %[[V2]]
// CHECK-DAG: %[[V4:.*]] = affine.apply #[[MAP1]]()[%[[V3]]]
// CHECK-DAG: %[[V5:.*]] = arith.index_castui %[[V4]] : index to i32
// CHECK-DAG: %[[V6:.*]] = arith.uitofp %[[V5]] : i32 to f32
// CHECK-DAG: %[[V7:.*]] = llvm.call_intrinsic "llvm.sqrt.f32"(%[[V6]]) : (f32) -> f32
// CHECK-DAG: %[[V8:.*]] = arith.fptoui %[[V7]] : f32 to i32
// CHECK-DAG: %[[V9:.*]] = arith.index_castui %[[V8]] : i32 to index
// CHECK-DAG: %[[V10:.*]] = arith.muli %[[V9]], %[[V9]]
// CHECK-DAG: %[[V11:.*]] = arith.cmpi ugt, %[[V10]], %[[V4]]
// CHECK-DAG: %[[V12:.*]] = arith.subi %[[V9]], %c1
// CHECK-DAG: %[[V13:.*]] = arith.select %[[V11]], %[[V12]], %[[V9]]
// CHECK-DAG: %[[V14:.*]] = arith.addi %[[V13]], %c1
// CHECK-DAG: %[[V15:.*]] = arith.muli %[[V14]], %[[V14]]
// CHECK-DAG: %[[V16:.*]] = arith.cmpi ule, %[[V15]], %[[V4]]
// CHECK-DAG: %[[V17:.*]] = arith.select %[[V16]], %[[V14]], %[[V13]]
// CHECK-DAG: %[[V18:.*]] = arith.addi %[[V17]], %c1
// CHECK-DAG: %[[V19:.*]] = arith.muli %[[V18]], %[[V17]]
// CHECK-DAG: %[[V20:.*]] = arith.shrui %[[V19]], %c1
// CHECK-DAG: %[[V21:.*]] = arith.cmpi ult, %[[V3]], %[[V20]]
// CHECK-DAG: %[[V22:.*]] = arith.select %[[V21]], %c1, %c0
// CHECK-DAG: %[[V23:.*]] = affine.apply #[[MAP5]]()[%[[V17]], %[[V22]]]
// CHECK-DAG: %[[V24:.*]] = affine.apply #[[MAP6]]()[%[[V17]], %[[V22]]]
// CHECK-DAG: %[[V25:.*]] = arith.muli %[[V23]], %[[V24]]
// CHECK-DAG: %[[V26:.*]] = arith.shrsi %[[V25]], %c1
// CHECK-DAG: %[[V27:.*]] = affine.apply #[[MAP7]]()[%[[V26]], %[[V3]]]
// CHECK-DAG: %[[V28:.*]] = affine.apply #[[MAP8]]()[%[[V26]], %[[V3]]]
// CHECK-DAG: %[[V29:.*]] = arith.select %[[V1]], %[[V27]], %[[V28]]
// CHECK: return %[[V29]]
func.func @antidiagonal(%x: index) -> index {
  %c255 = arith.constant 255 : index
  %flat = arith.andi %x, %c255 : index
  %0, %1 = "lego.inv"(%flat) {layout = #lego.layout<"OrderBy(GenP([16, 16], antidiagonal))">} : (index) -> (index, index)
  return %0 : index
}

func.func @skew(%i: index, %j: index) -> index {
  %c8 = arith.constant 8 : index
  %sum = arith.addi %i, %j : index
  %column = arith.remui %sum, %c8 : index
  %row = arith.muli %i, %c8 : index
  %flat = arith.addi %row, %column : index
  return %flat : index
}

func.func @unskew(%flat: index) -> (index, index) {
  %c8 = arith.constant 8 : index
  %i = arith.divui %flat, %c8 : index
  %column = arith.remui %flat, %c8 : index
  %less = arith.cmpi ult, %column, %i : index
  %back = arith.subi %column, %i : index
  %wrapped = arith.addi %back, %c8 : index
  %j = arith.select %less, %wrapped, %back : index
  return %i, %j : index, index
}

#skewed = #lego.layout<"OrderBy(GenP([8, 8], @skew, @unskew))">

// The functions are read, not called: what they compute is simplified with the rest.
// CHECK-LABEL: func.func @own(
// CHECK-SAME: %[[X:.*]]: index
// CHECK-DAG: %[[V0:.*]] = arith.shrsi %[[X]], %c3
// CHECK-DAG: %[[V1:.*]] = affine.apply #[[MAP9]]()[%[[X]], %[[V0]]]
// CHECK-DAG: %[[V2:.*]] = arith.andi %[[V1]], %c7
// CHECK-DAG: %[[V3:.*]] = arith.andi %[[X]], %c56
// CHECK-DAG: %[[V4:.*]] = affine.apply #[[MAP9]]()[%[[V2]], %[[V3]]]
// CHECK-DAG: %[[V5:.*]] = arith.andi %[[X]], %c7
// CHECK-DAG: %[[V6:.*]] = arith.andi %[[V0]], %c7
// CHECK-DAG: %[[V7:.*]] = arith.cmpi ult, %[[V5]], %[[V6]]
// CHECK-DAG: %[[V8:.*]] = affine.apply #[[MAP11]]()[%[[V5]], %[[V6]]]
// CHECK-DAG: %[[V9:.*]] = affine.apply #[[MAP5]]()[%[[V5]], %[[V6]]]
// CHECK-DAG: %[[V10:.*]] = arith.select %[[V7]], %[[V8]], %[[V9]]
// CHECK: return %[[V4]], %[[V10]] : index, index
func.func @own(%x: index) -> (index, index) {
  %c63 = arith.constant 63 : index
  %flat = arith.andi %x, %c63 : index
  %i, %j = "lego.inv"(%flat) {layout = #lego.layout<"OrderBy(Row(8, 8))">} : (index) -> (index, index)
  %0 = "lego.apply"(%i, %j) {layout = #skewed} : (index, index) -> index
  %1, %2 = "lego.inv"(%flat) {layout = #skewed} : (index) -> (index, index)
  return %0, %2 : index, index
}
