// C = A B in f16, with f32 accumulators. The kernel below computes a whole tile of C. The layouts here
// say where the matrices lie, and which CTA computes what. All others are derived: where tiles lie in
// shared memory, which thread holds what, and how many threads a CTA has.
//
//   legoc matmul.mlir --schedule=cp_async --run                      cp.async, from sm_80 on
//   legoc matmul.mlir --schedule=persistent --run                    on Hopper: TMA and wgmma
//   legoc matmul.mlir --schedule=persistent --keep=steps --emit=ptx  keep the module after each step

// The matrices, in CTA tiles. Col instead of Row transposes one.
#A = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK])">
#B = #lego.layout<"OrderBy(Row(K, N)).TileBy([K/BK, N/BN], [BK, BN])">
#C = #lego.layout<"OrderBy(Row(M, N)).TileBy([M/BM, N/BN], [BM, BN])">

// CTA id -> tile of C, in raster groups of four rows of tiles.
#blocks = #lego.layout<"OrderBy(RegP([M/BM/4, 4, N/BN], [0, 2, 1])).GroupBy([M/BM, N/BN])">

module attributes {
  lego.sizes = {M = 512, N = 512, K = 256, BM = 128, BN = 128, BK = 64},
  lego.reference = "matmul"
} {
  func.func @matmul(%a: memref<512x256xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                    %b: memref<256x512xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                    %c: memref<512x512xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %tiles = "lego.size"() {layout = #blocks} : () -> index
    %steps = "lego.dim"() {layout = #A, dim = 1} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
      %zero = arith.constant dense<0.0> : tensor<128x128xf32>
      %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> tensor<128x128xf32> {
        %x = "lego.load"(%a, %m, %k, %c0, %c0) {layout = #A, slice = array<i64: 2, 3>}
            : (memref<512x256xf16>, index, index, index, index) -> tensor<128x64xf16>
        %y = "lego.load"(%b, %k, %n, %c0, %c0) {layout = #B, slice = array<i64: 2, 3>}
            : (memref<256x512xf16>, index, index, index, index) -> tensor<64x128xf16>
        %next = "lego.dot"(%x, %y, %acc)
            : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>
        scf.yield %next : tensor<128x128xf32>
      }
      %result = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xf16>
      "lego.store"(%result, %c, %m, %n, %c0, %c0) {layout = #C, slice = array<i64: 2, 3>}
          : (tensor<128x128xf16>, memref<512x512xf16>, index, index, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
