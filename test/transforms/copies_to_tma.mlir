// The step copies_to_tma: a copy from global to shared memory becomes a TMA load.
// RUN: %legoc %s --schedule=%S/Inputs/copies_to_tma.mlir --emit=scheduled --keep %t -o %t.out
// RUN: cat %t/01-copies_to_tma.mlir | FileCheck %s

#A = #lego.layout<"OrderBy(Row(128, 256)).TileBy([4, 2], [32, 128])">
#S = #lego.layout<"OrderBy(Row(3), GenP([64, 64], tma_swizzle(128, 2))).OrderBy(Row(3), RegP([32, 2, 64], [1, 0, 2])).GroupBy([3, 32, 128])">

// A tile of 256-byte rows is two boxes, each as wide as a row of the swizzle. The map is made once.
// CHECK-LABEL: func.func @copy
func.func @copy(%a: memref<32768xf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %threads = arith.constant 32 : index
  // CHECK: %[[MAP:[0-9]+]] = "lego.tensor_map"(%arg0) {box = array<i64: 64, 32>, {{.*}}shape = array<i64: 256, 128>, strides = array<i64: 512>, swizzle = 128 : i64}
  // CHECK-NOT: lego.tensor_map
  // CHECK: gpu.launch
  gpu.launch blocks(%m, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // CHECK: %[[S:[0-9]+]] = "lego.alloc"() {{.*}}, lego.alignment = 1024 : i64}
    %s = "lego.alloc"() {layout = #S} : () -> memref<?xf16, #gpu.address_space<workgroup>>
    %c2 = arith.constant 2 : index
    %at = arith.constant 64 : i32
    %bytes = arith.constant 8192 : i32
    %full = llvm.inttoptr %at : i32 to !llvm.ptr<3>
    // CHECK: nvvm.mbarrier.arrive.expect_tx %[[FULL:[0-9]+]]
    nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
    // Columns 128 and 192, of the row 32 * m.
    // CHECK: %[[COLUMN:[0-9]+]] = "lego.apply"(%c1, %{{.*}}) {layout = #lego.layout<"OrderBy(Row({{[0-9]+}}, 128))">}
    // CHECK: %[[ROW:[0-9]+]] = "lego.apply"(%arg{{[0-9]+}}, %{{.*}}) {layout = #lego.layout<"OrderBy(Row({{[0-9]+}}, 32))">}
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %[[FULL]], box[%{{.*}}, %{{.*}}]
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %[[FULL]], box[%{{.*}}, %{{.*}}]
    // CHECK-NOT: "lego.load"
    // CHECK-NOT: multicast
    // CHECK: gpu.barrier
    %x = "lego.load"(%a, %m, %c1) {layout = #A, slice = array<i64: 2, 3>}
        : (memref<32768xf16>, index, index) -> vector<32x128xf16>
    "lego.store"(%x, %s, %c2) {layout = #S, slice = array<i64: 1, 2>}
        : (vector<32x128xf16>, memref<?xf16, #gpu.address_space<workgroup>>, index) -> ()
    gpu.barrier
    // CHECK-NOT: nvvm.cp.async.bulk.tensor
    // CHECK: gpu.terminator
    gpu.terminator
  }
  return
}

// Copies of other kinds stay: of a value that is used otherwise, from shared memory, of an element.
// CHECK-LABEL: func.func @others
func.func @others(%a: memref<1024xf32>, %b: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  // CHECK-NOT: lego.tensor_map
  // CHECK-NOT: cp.async.bulk
  // CHECK: return
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %s = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(32, 32))">}
        : () -> memref<?xf32, #gpu.address_space<workgroup>>
    %x = "lego.load"(%a, %tx) {layout = #lego.layout<"OrderBy(Row(32, 32))">, slice = array<i64: 1>}
        : (memref<1024xf32>, index) -> vector<32xf32>
    "lego.store"(%x, %s, %tx)
        {layout = #lego.layout<"OrderBy(Row(32, 32))">, slice = array<i64: 1>}
        : (vector<32xf32>, memref<?xf32, #gpu.address_space<workgroup>>, index) -> ()
    "lego.store"(%x, %b, %tx)
        {layout = #lego.layout<"OrderBy(Row(32, 32))">, slice = array<i64: 1>}
        : (vector<32xf32>, memref<1024xf32>, index) -> ()
    gpu.barrier
    %y = "lego.load"(%s, %tx) {layout = #lego.layout<"OrderBy(Row(32, 32))">, slice = array<i64: 1>}
        : (memref<?xf32, #gpu.address_space<workgroup>>, index) -> vector<32xf32>
    "lego.store"(%y, %b, %tx)
        {layout = #lego.layout<"OrderBy(Row(32, 32))">, slice = array<i64: 1>}
        : (vector<32xf32>, memref<1024xf32>, index) -> ()
    %z = "lego.load"(%a, %tx, %c0) {layout = #lego.layout<"OrderBy(Row(32, 32))">}
        : (memref<1024xf32>, index, index) -> f32
    "lego.store"(%z, %s, %tx, %c0) {layout = #lego.layout<"OrderBy(Row(32, 32))">}
        : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> ()
    gpu.terminator
  }
  return
}
