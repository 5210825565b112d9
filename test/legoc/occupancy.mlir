// Registers for so many CTAs on a multiprocessor; and numbers that it cannot hold.
// RUN: sed -e 's/VALUE/4/' %s > %t.mlir
// RUN: %legoc %t.mlir --emit=ptx | FileCheck %s
// RUN: sed -e 's/VALUE/17/' %s > %t.many.mlir
// RUN: not %legoc %t.many.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: sed -e 's/VALUE/"four"/' %s > %t.word.mlir
// RUN: not %legoc %t.word.mlir --emit=ptx 2>&1 | FileCheck %s --check-prefix=WORD

// CHECK: .maxntid 128, 1, 1
// CHECK: .minnctapersm 4
// MANY: occupancy.mlir{{.*}}: error: 'lego.ctas_per_sm' is 17 : i64, and a multiprocessor holds 1 to 16 CTAs of 128 threads
// MANY: hint: {lego.ctas_per_sm = 16}
// WORD: error: 'lego.ctas_per_sm' is "four", and

#L = #lego.layout<"OrderBy(Row(128))">

func.func @copy(%a: memref<128xf32> {lego.layout = #L}, %b: memref<128xf32> {lego.layout = #L}) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %x = "lego.load"(%a, %tx) {layout = #L} : (memref<128xf32>, index) -> f32
    "lego.store"(%x, %b, %tx) {layout = #L} : (f32, memref<128xf32>, index) -> ()
    gpu.terminator
  } {lego.ctas_per_sm = VALUE}
  return
}
