// A matmul of 128x80 by 80x192: a grid of 3 tiles along x and 2 along y, five iterations each.
#A = #lego.layout<"OrderBy(Row(128, 80))">
#B = #lego.layout<"OrderBy(Row(80, 192))">
#C = #lego.layout<"OrderBy(Row(128, 192))">
func.func @matmul(%a: memref<10240xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                  %b: memref<15360xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %c: memref<24576xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %three, %gy = %two, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %by, %c64 : index
    %x = gpu.block_id x
    %column = arith.muli %x, %c64 : index
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %k = arith.muli %i, %c16 : index
      %ta = "lego.load"(%a, %row, %k) {layout = #A, slice = array<i64: 0, 1>}
        : (memref<10240xf16>, index, index) -> tensor<64x16xf16>
      %tb = "lego.load"(%b, %k, %column) {layout = #B, slice = array<i64: 0, 1>}
        : (memref<15360xf16>, index, index) -> tensor<16x64xf16>
      %d = "lego.dot"(%ta, %tb, %acc)
        : (tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %short = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
    "lego.store"(%short, %c, %row, %column) {layout = #C, slice = array<i64: 0, 1>}
      : (tensor<64x64xf16>, memref<24576xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}
