// The GEMM of matmul.mlir on Hopper: a producer warpgroup copies tiles by TMA, two consumers multiply
// them by WGMMA. The payload is the same. The shared-memory layouts differ, because they have the
// swizzle of TMA and WGMMA, and so does the layout of warps. All descriptors follow from the layouts.
//
//   legoc hopper.mlir --run
//   legoc hopper.mlir --emit=scheduled --keep=steps            keep the module after each step

// The matrices, in CTA tiles. Col instead of Row transposes one. Then its tile in shared memory must
// be contiguous along the same dimension, so change that layout, too.
#A = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])">
#B = #lego.layout<"OrderBy(Row(K, N)).TileBy([K/64, N/256], [64, 256])">
#C = #lego.layout<"OrderBy(Row(M, N)).TileBy([M/128, N/256], [128, 256])">

// Rows of 128 bytes. A: 64 elements along k. B: four column blocks of 64 columns, one after another.
// C: an epilogue tile of 64 by 64, through which a warpgroup stores its rows.
#shared_A = #lego.layout<"OrderBy(GenP([128, 64], tma_swizzle(128, 2)))">
#shared_B = #lego.layout<"OrderBy(GenP([256, 64], tma_swizzle(128, 2))).OrderBy(RegP([64, 4, 64], [1, 0, 2])).GroupBy([64, 256])">
#shared_C = #lego.layout<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">

// CTA id -> tile of C; warp id -> warp tile, one below the other, four in a warpgroup.
#blocks = #lego.layout<"OrderBy(RegP([M/128, N/256], [1, 0]))">
#warps = #lego.layout<"OrderBy(Row(8, 1))">

#row_column = affine_map<(i, j, k) -> (i, k)>
#column = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>

module attributes {
  lego.sizes = {M = 256, N = 512, K = 256},
  lego.reference = "matmul",
  lego.schedule = "wgmma"
} {
  func.func @matmul(%a: memref<256x256xf16> {lego.layout = #A, lego.alignment = 16 : i64},
                    %b: memref<256x512xf16> {lego.layout = #B, lego.alignment = 16 : i64},
                    %c: memref<256x512xf16> {lego.layout = #C, lego.alignment = 16 : i64}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant 384 : index
    %tiles = "lego.size"() {layout = #blocks} : () -> index
    %steps = "lego.dim"() {layout = #A, dim = 1} : () -> index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
      %m, %n = "lego.inv"(%bx) {layout = #blocks} : (index) -> (index, index)
      %zero = arith.constant dense<0.0> : vector<128x256xf32>
      %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> vector<128x256xf32> {
        %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #shared_A}
            : (memref<256x256xf16>, index, index) -> vector<128x64xf16>
        %y = "lego.load"(%b, %k, %n) {layout = #B, slice = array<i64: 2, 3>, shared = #shared_B}
            : (memref<256x512xf16>, index, index) -> vector<64x256xf16>
        %next = vector.contract {indexing_maps = [#row_column, #column, #sum],
                                 iterator_types = ["parallel", "parallel", "reduction"],
                                 lego.warps = #warps}
            %x, %y, %acc : vector<128x64xf16>, vector<64x256xf16> into vector<128x256xf32>
        scf.yield %next : vector<128x256xf32>
      }
      %result = arith.truncf %sum : vector<128x256xf32> to vector<128x256xf16>
      "lego.store"(%result, %c, %m, %n) {layout = #C, slice = array<i64: 2, 3>, shared = #shared_C}
          : (vector<128x256xf16>, memref<256x512xf16>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
