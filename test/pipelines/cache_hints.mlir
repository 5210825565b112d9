// cache_hints.mlir: what is loaded of a kernel's arguments gets the launch's priority, and brings the bytes it asks for.
// RUN: %legoc %s --emit=ptx | FileCheck %s
// RUN: sed -e 's/evict_last/evict_first/' %s > %t.mlir
// RUN: %legoc %t.mlir --emit=ptx | FileCheck %s --check-prefix=FIRST
// RUN: %legoc %s --emit=ptx --target=sm_75 | FileCheck %s --check-prefix=OLD
// RUN: sed -e 's/lego.eviction = "evict_last"/lego.prefetch = 128/' %s > %t.mlir
// RUN: %legoc %t.mlir --emit=ptx | FileCheck %s --check-prefix=LINES
// RUN: sed -e 's/"evict_last"/"evict_last", lego.prefetch = 256/' %s > %t.mlir
// RUN: %legoc %t.mlir --emit=ptx | FileCheck %s --check-prefix=BOTH
// RUN: sed -e 's/lego.eviction = "evict_last"/lego.prefetch = 32/' %s > %t.wrong.mlir
// RUN: not %legoc %t.wrong.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: sed -e 's/evict_last/never/' %s > %t.wrong.mlir
// RUN: not %legoc %t.wrong.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: createpolicy.fractional.L2::evict_last.b64 %[[P:.*]], 1.0;
// CHECK: ld.global.L2::cache_hint.v4.b32 {{.*}}, %[[P]];
// CHECK: ld.global.L2::cache_hint.v2.b32 {{.*}}, %[[P]];
// CHECK: ld.global.L2::cache_hint.b32 {{.*}}, %[[P]];
// CHECK: ld.global.L2::cache_hint.b16 {{.*}}, %[[P]];
// CHECK: ld.global.L2::cache_hint.b8 {{.*}}, %[[P]];
// CHECK: ld.global.L2::cache_hint.v2.b32 {{.*}}, %[[P]];
// CHECK-NOT: ld.global.b

// FIRST-NOT: createpolicy
// FIRST: ld.global.L1::evict_first.v4.b32
// FIRST: ld.global.L1::evict_first.v2.b32
// FIRST: ld.global.L1::evict_first.b32
// FIRST: ld.global.L1::evict_first.b16
// FIRST: ld.global.L1::evict_first.b8
// FIRST: ld.global.L1::evict_first.v2.b32
// FIRST-NOT: ld.global.b

// LINES-NOT: createpolicy
// LINES: ld.global.L2::128B.v4.b32
// LINES: ld.global.L2::128B.b8
// LINES-NOT: ld.global.b

// BOTH: ld.global.L2::cache_hint.L2::256B.v4.b32
// BOTH: ld.global.L2::cache_hint.L2::256B.b8

// OLD-NOT: cache_hint
// OLD: ret;

// SIZE: 'lego.prefetch' is 64, 128 or 256, not 32

// WRONG: 'lego.eviction' is 'evict_last' or 'evict_first', not "never"
module {
  func.func @load(%a: memref<256xf32>, %b: memref<256xbf16>, %c: memref<256xf32>,
                  %d: memref<256xi8>, %e: memref<256xf64>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
      %four = arith.muli %tx, %c4 : index
      %x = vector.load %a[%four] {alignment = 16 : i64} : memref<256xf32>, vector<4xf32>
      %y = vector.load %b[%four] {alignment = 8 : i64} : memref<256xbf16>, vector<4xbf16>
      %z = memref.load %a[%tx] : memref<256xf32>
      %h = memref.load %b[%tx] : memref<256xbf16>
      %i = memref.load %d[%tx] : memref<256xi8>
      %f = memref.load %e[%tx] : memref<256xf64>
      memref.store %h, %b[%c1] : memref<256xbf16>
      memref.store %i, %d[%c1] : memref<256xi8>
      memref.store %f, %e[%c1] : memref<256xf64>
      %w = arith.extf %y : vector<4xbf16> to vector<4xf32>
      %s = arith.addf %x, %w : vector<4xf32>
      %v = vector.broadcast %z : f32 to vector<4xf32>
      %r = arith.mulf %s, %v : vector<4xf32>
      vector.store %r, %c[%four] {alignment = 16 : i64} : memref<256xf32>, vector<4xf32>
      gpu.terminator
    } {lego.eviction = "evict_last"}
    return
  }
}
