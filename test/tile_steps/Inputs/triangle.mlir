// A matmul of a lower triangle: the tiles of the second row sum over one block more than those of the first.
#A = #lego.layout<"OrderBy(Row(128, 128))">
#B = #lego.layout<"OrderBy(Row(128, 192))">
func.func @matmul(%a: memref<16384xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                  %b: memref<24576xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %c: memref<24576xf16> {lego.layout = #B, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %three, %gy = %two, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %by, %c64 : index
    %x = gpu.block_id x
    %column = arith.muli %x, %c64 : index
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %trips = arith.addi %by, %c1 : index
    %sum = scf.for %i = %c0 to %trips step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %k = arith.muli %i, %c64 : index
      %ta = "lego.load"(%a, %row, %k) {layout = #A, slice = array<i64: 0, 1>}
        : (memref<16384xf16>, index, index) -> tensor<64x64xf16>
      %tb = "lego.load"(%b, %k, %column) {layout = #B, slice = array<i64: 0, 1>}
        : (memref<24576xf16>, index, index) -> tensor<64x64xf16>
      %d = "lego.dot"(%ta, %tb, %acc)
        : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %short = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
    "lego.store"(%short, %c, %row, %column) {layout = #B, slice = array<i64: 0, 1>}
      : (tensor<64x64xf16>, memref<24576xf16>, index, index) -> ()
    gpu.terminator
  }
  return
}
