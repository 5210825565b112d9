// Rows of 7x512, less their sums: two clusters of two CTAs each take every second row.
#X = #lego.layout<"OrderBy(Row(7, 512))">
func.func @center(%x: memref<3584xf16> {lego.layout = #X, lego.alignment = 16 : i64},
                  %y: memref<3584xf32> {lego.layout = #X, lego.alignment = 16 : i64}) {
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %threads = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %four, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %cluster = "gpu.cluster_id"() {dimension = #gpu<dim x>} : () -> index
    scf.for %i = %c0 to %c4 step %c1 {
      %before = arith.muli %i, %c2 : index
      %row = arith.addi %before, %cluster : index
      %h = "lego.load"(%x, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (memref<3584xf16>, index, index) -> tensor<1x512xf16>
      %v = arith.extf %h : tensor<1x512xf16> to tensor<1x512xf32>
      %s = "lego.reduce"(%v) {kind = "add", dim = 1 : i64}
        : (tensor<1x512xf32>) -> tensor<1x1xf32>
      %b = "lego.broadcast"(%s) : (tensor<1x1xf32>) -> tensor<1x512xf32>
      %d = arith.subf %v, %b : tensor<1x512xf32>
      "lego.store"(%d, %y, %row, %c0) {layout = #X, slice = array<i64: 0, 1>}
        : (tensor<1x512xf32>, memref<3584xf32>, index, index) -> ()
    }
    gpu.terminator
  } {lego.cluster = 2 : i64}
  return
}
