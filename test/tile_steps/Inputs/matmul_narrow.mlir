// As matmul.mlir, with a matrix A of 8 bits that is converted, in a launch that may begin early.
#A = #lego.layout<"OrderBy(Row(128, 256))">
#B = #lego.layout<"OrderBy(Row(256, 64))">
#C = #lego.layout<"OrderBy(Row(128, 64))">
func.func @matmul(%a: memref<32768xf8E4M3FN> {lego.layout = #A, lego.alignment = 16 : i64},
                  %b: memref<16384xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                  %c: memref<8192xf32> {lego.layout = #C, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %two, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    nvvm.griddepcontrol wait
    nvvm.griddepcontrol launch_dependents
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %bx, %c64 : index
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %k = arith.muli %i, %c64 : index
      %narrow = "lego.load"(%a, %row, %k) {layout = #A, slice = array<i64: 0, 1>}
        : (memref<32768xf8E4M3FN>, index, index) -> tensor<64x64xf8E4M3FN>
      %x = arith.extf %narrow : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
      %y = "lego.load"(%b, %k, %c0) {layout = #B, slice = array<i64: 0, 1>}
        : (memref<16384xf16>, index, index) -> tensor<64x64xf16>
      %d = "lego.dot"(%x, %y, %acc)
        : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    "lego.store"(%sum, %c, %row, %c0) {layout = #C, slice = array<i64: 0, 1>}
      : (tensor<64x64xf32>, memref<8192xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
