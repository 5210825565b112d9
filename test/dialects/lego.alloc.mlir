// lego.alloc: room for a layout; shared memory is an attribution of the kernel.
// RUN: %legoc %s | FileCheck %s

// CHECK-DAG: #[[MAP:.*]] = affine_map<()[s0] -> (s0 * 16)>
// CHECK-DAG: #[[MAP1:.*]] = affine_map<(d0, d1) -> (d0 * 16 + d1)>


#tile = #lego.layout<"OrderBy(GenP([16, 16], swizzle))">

// CHECK-LABEL: func.func @shared
// CHECK: gpu.launch blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %c1) threads(%[[V0:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c16, %{{.*}} = %c1, %{{.*}} = %c1) workgroup(%[[V1:.*]] : memref<256xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<15xf16, #gpu.address_space<workgroup>>) {
// CHECK-DAG: %[[V2:.*]] = affine.apply #[[MAP]]()[%[[V0]]]
// CHECK: memref.store %cst, %[[V1]][%[[V2]]] : memref<256xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT: gpu.terminator
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @shared() {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant 1.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c1, %sz = %c1) {
    %a = "lego.alloc"() {layout = #tile} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %b = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(3, 5))">}
        : () -> memref<?xf16, #gpu.address_space<workgroup>>
    "lego.store"(%one, %a, %tx, %tx) {layout = #tile}
        : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> ()
    gpu.terminator
  }
  return
}

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @function(
  // CHECK-SAME: %[[OUT:.*]]: memref<16xf32>) workgroup(%[[SHARED:.*]] : memref<256xf32, #gpu.address_space<workgroup>>
  // CHECK: %[[V0:.*]] = memref.alloca() : memref<4xf32>
  // CHECK-NEXT: %[[V1:.*]] = gpu.thread_id x
  // CHECK-NEXT: scf.for %[[V2:.*]] = %c0 to %c4 step %c1 {
  // CHECK-DAG: %[[V3:.*]] = arith.xori %[[V2]], %[[V1]]
  // CHECK-DAG: %[[V4:.*]] = affine.apply #[[MAP1]](%[[V2]], %[[V3]])
  // CHECK: %[[V5:.*]] = memref.load %[[SHARED]][%[[V4]]] : memref<256xf32, #gpu.address_space<workgroup>>
  // CHECK-NEXT: memref.store %[[V5]], %[[V0]][%[[V2]]] : memref<4xf32>
  // CHECK-NEXT: %[[V6:.*]] = memref.load %[[V0]][%c0] : memref<4xf32>
  // CHECK-NEXT: memref.store %[[V6]], %[[OUT]][%[[V1]]] : memref<16xf32>
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.return
  gpu.func @function(%out: memref<16xf32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %tid = gpu.thread_id x
    %tile = "lego.alloc"() {layout = #tile} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    // What a loop allocates for a thread is allocated once, before it.
    scf.for %k = %c0 to %c4 step %c1 {
      %own = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(4))">} : () -> memref<?xf32>
      %v = "lego.load"(%tile, %k, %tid) {layout = #tile}
          : (memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> f32
      "lego.store"(%v, %own, %k) {layout = #lego.layout<"OrderBy(Row(4))">} : (f32, memref<?xf32>, index) -> ()
      %w = "lego.load"(%own, %c0) {layout = #lego.layout<"OrderBy(Row(4))">} : (memref<?xf32>, index) -> f32
      memref.store %w, %out[%tid] : memref<16xf32>
    }
    gpu.return
  }

  // Operations of other dialects may keep the type they were written with.
  // CHECK-LABEL: gpu.func @cast(
  // CHECK-SAME: %[[OUT:.*]]: memref<16xindex>) workgroup(%[[SHARED:.*]] : memref<256xf32, #gpu.address_space<workgroup>>
  // CHECK: memref.store %c256, %[[OUT]][%c0] : memref<16xindex>
  // CHECK-NEXT: gpu.return
  gpu.func @cast(%out: memref<16xindex>) kernel {
    %c0 = arith.constant 0 : index
    %tile = "lego.alloc"() {layout = #tile} : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %n = memref.dim %tile, %c0 : memref<?xf32, #gpu.address_space<workgroup>>
    memref.store %n, %out[%c0] : memref<16xindex>
    gpu.return
  }
}
