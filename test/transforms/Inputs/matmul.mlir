// C = A B in f16, with f32 accumulators. The kernel below computes a whole tile of C. The layouts here
// say where the data lives and which CTA and warp computes what.
//

// The matrices, in CTA tiles. Col instead of Row transposes one.
#A = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK])">
#B = #lego.layout<"OrderBy(Row(K, N)).TileBy([K/BK, N/BN], [BK, BN])">
#C = #lego.layout<"OrderBy(Row(M, N)).TileBy([M/BM, N/BN], [BM, BN])">

// Their tiles in shared memory: the 16-byte chunks of a row are XORed with the row's number.
#shared_A = #lego.layout<"OrderBy(GenP([BM, BK], swizzle(8, 1, 8)))">
#shared_B = #lego.layout<"OrderBy(GenP([BK, BN], swizzle(8, 1, 8)))">
#shared_C = #lego.layout<"OrderBy(GenP([BM, BN], swizzle(8, 1, 8)))">

// CTA id -> tile of C, in raster groups of four rows of tiles; warp id -> warp tile.
#blocks = #lego.layout<"OrderBy(RegP([M/BM/4, 4, N/BN], [0, 2, 1])).GroupBy([M/BM, N/BN])">
#warps = #lego.layout<"OrderBy(Row(2, 2))">

#row_column = affine_map<(i, j, k) -> (i, k)>
#column = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>

module attributes {
  lego.sizes = {M = 512, N = 512, K = 256, BM = 128, BN = 128, BK = 64},
  lego.reference = "matmul"
} {
  func.func @matmul(%a: memref<512x256xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                    %b: memref<256x512xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                    %c: memref<512x512xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant 128 : index
    %tiles = "lego.size"() {layout = #blocks} : () -> index
    %steps = "lego.dim"() {layout = #A, dim = 1} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
      %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
      %zero = arith.constant dense<0.0> : vector<128x128xf32>
      %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> vector<128x128xf32> {
        %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #shared_A}
            : (memref<512x256xf16>, index, index) -> vector<128x64xf16>
        %y = "lego.load"(%b, %k, %n) {layout = #B, slice = array<i64: 2, 3>, shared = #shared_B}
            : (memref<256x512xf16>, index, index) -> vector<64x128xf16>
        %next = vector.contract {indexing_maps = [#row_column, #column, #sum],
                                 iterator_types = ["parallel", "parallel", "reduction"],
                                 lego.warps = #warps}
            %x, %y, %acc : vector<128x64xf16>, vector<64x128xf16> into vector<128x128xf32>
        scf.yield %next : vector<128x128xf32>
      }
      %result = arith.truncf %sum : vector<128x128xf32> to vector<128x128xf16>
      "lego.store"(%result, %c, %m, %n) {layout = #C, slice = array<i64: 2, 3>, shared = #shared_C}
          : (vector<128x128xf16>, memref<512x512xf16>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
