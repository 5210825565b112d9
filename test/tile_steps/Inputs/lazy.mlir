// Attention as in attention.mlir, with exponentials of base 2: a row's base changes only where a score
// exceeds it by more than 8.
#Q = #lego.layout<"OrderBy(Row(128, 64))">
#K = #lego.layout<"OrderBy(Row(128, 64))">
func.func @lazy(%q: memref<8192xf16> {lego.layout = #Q, lego.alignment = 16 : i64},
                     %k: memref<8192xf16> {lego.layout = #K, lego.alignment = 16 : i64},
                     %v: memref<8192xf16> {lego.layout = #K, lego.alignment = 16 : i64},
                     %out: memref<8192xf32> {lego.layout = #Q, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %threads = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %queries = "lego.load"(%q, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>}
      : (memref<8192xf16>, index, index) -> tensor<128x64xf16>
    %lowest = arith.constant dense<-1.0e30> : tensor<128x1xf32>
    %none = arith.constant dense<0.0> : tensor<128x1xf32>
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %start = arith.constant dense<0.0> : tensor<128x32xf32>
    %scale = arith.constant dense<0.75> : tensor<128x32xf32>
    %room = arith.constant dense<8.0> : tensor<128x1xf32>
    %unit = arith.constant dense<1.0> : tensor<128x1xf32>
    %m, %t, %l, %o = scf.for %i = %c0 to %c4 step %c1
        iter_args(%most = %lowest, %before = %none, %total = %none, %sums = %zero)
        -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>) {
      %at = arith.muli %i, %c32 : index
      %keys = "lego.load"(%k, %at, %c0) {layout = #K, slice = array<i64: 0, 1>}
        : (memref<8192xf16>, index, index) -> tensor<32x64xf16>
      %turned = "lego.transpose"(%keys) {order = array<i64: 1, 0>}
        : (tensor<32x64xf16>) -> tensor<64x32xf16>
      %s = "lego.dot"(%queries, %turned, %start)
        : (tensor<128x64xf16>, tensor<64x32xf16>, tensor<128x32xf32>) -> tensor<128x32xf32>
      %scores = arith.mulf %s, %scale : tensor<128x32xf32>
      %here = "lego.reduce"(%scores) {kind = "max", dim = 1 : i64}
        : (tensor<128x32xf32>) -> tensor<128x1xf32>
      %grown = arith.cmpf ogt, %here, %most : tensor<128x1xf32>
      %base = arith.select %grown, %here, %before : tensor<128x1xi1>, tensor<128x1xf32>
      %bound = arith.addf %here, %room : tensor<128x1xf32>
      %larger = arith.select %grown, %bound, %most : tensor<128x1xi1>, tensor<128x1xf32>
      %drop = arith.subf %most, %larger : tensor<128x1xf32>
      %factor = math.exp2 %drop : tensor<128x1xf32>
      %old = arith.select %grown, %factor, %unit : tensor<128x1xi1>, tensor<128x1xf32>
      %wide = "lego.broadcast"(%base) : (tensor<128x1xf32>) -> tensor<128x32xf32>
      %less = arith.subf %scores, %wide : tensor<128x32xf32>
      %p = math.exp2 %less : tensor<128x32xf32>
      %values = "lego.load"(%v, %at, %c0) {layout = #K, slice = array<i64: 0, 1>}
        : (memref<8192xf16>, index, index) -> tensor<32x64xf16>
      %shrink = "lego.broadcast"(%old) : (tensor<128x1xf32>) -> tensor<128x64xf32>
      %kept = arith.mulf %sums, %shrink : tensor<128x64xf32>
      %short = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xf16>
      %next = "lego.dot"(%short, %values, %kept)
        : (tensor<128x32xf16>, tensor<32x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
      %row = "lego.reduce"(%p) {kind = "add", dim = 1 : i64}
        : (tensor<128x32xf32>) -> tensor<128x1xf32>
      %faded = arith.mulf %total, %old : tensor<128x1xf32>
      %sum = arith.addf %faded, %row : tensor<128x1xf32>
      scf.yield %larger, %base, %sum, %next
        : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>
    }
    %all = "lego.broadcast"(%l) : (tensor<128x1xf32>) -> tensor<128x64xf32>
    %mean = arith.divf %o, %all : tensor<128x64xf32>
    "lego.store"(%mean, %out, %c0, %c0) {layout = #Q, slice = array<i64: 0, 1>}
      : (tensor<128x64xf32>, memref<8192xf32>, index, index) -> ()
    gpu.terminator
  }
  return
}
