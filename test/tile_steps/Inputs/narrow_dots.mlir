// Two dots of 8-bit elements: the second one multiplies what is computed of the first one's result by
// tiles that memory has along the other dimension than k.
#Q = #lego.layout<"OrderBy(Row(64, 64))">
#K = #lego.layout<"OrderBy(Row(128, 64))">
func.func @main(%q: memref<4096xf8E4M3FN> {lego.layout = #Q, lego.alignment = 16 : i64},
                %k: memref<8192xf8E4M3FN> {lego.layout = #K, lego.alignment = 16 : i64},
                %v: memref<8192xf8E4M3FN> {lego.layout = #K, lego.alignment = 16 : i64},
                %out: memref<4096xf32> {lego.layout = #Q, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %threads = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %queries = "lego.load"(%q, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>}
      : (memref<4096xf8E4M3FN>, index, index) -> tensor<64x64xf8E4M3FN>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %start = arith.constant dense<0.0> : tensor<64x32xf32>
    %o = scf.for %i = %c0 to %c4 step %c1 iter_args(%sums = %zero) -> (tensor<64x64xf32>) {
      %at = arith.muli %i, %c32 : index
      %keys = "lego.load"(%k, %at, %c0) {layout = #K, slice = array<i64: 0, 1>}
        : (memref<8192xf8E4M3FN>, index, index) -> tensor<32x64xf8E4M3FN>
      %turned = "lego.transpose"(%keys) {order = array<i64: 1, 0>}
        : (tensor<32x64xf8E4M3FN>) -> tensor<64x32xf8E4M3FN>
      %s = "lego.dot"(%queries, %turned, %start) {instruction = "wgmma"}
        : (tensor<64x64xf8E4M3FN>, tensor<64x32xf8E4M3FN>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf8E4M3FN>
      %values = "lego.load"(%v, %at, %c0) {layout = #K, slice = array<i64: 0, 1>}
        : (memref<8192xf8E4M3FN>, index, index) -> tensor<32x64xf8E4M3FN>
      %next = "lego.dot"(%p, %values, %sums) {instruction = "wgmma"}
        : (tensor<64x32xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    "lego.store"(%o, %out, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>}
      : (tensor<64x64xf32>, memref<4096xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
