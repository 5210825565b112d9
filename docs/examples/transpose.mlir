// A matrix transpose through shared memory. Every index in it comes from a layout.
//
//   legoc docs/examples/transpose.mlir --run               compile, run, compare with NumPy
//   legoc docs/examples/transpose.mlir --emit=ptx          print the PTX
//
// N is the size of the matrix, T that of a CTA's tile, R the rows that its threads copy at a time.

#blocks  = #lego.layout<"OrderBy(Row(N/T, N/T))">                          // CTA id    -> tile
#threads = #lego.layout<"OrderBy(Row(R, T))">                              // thread id -> element
#rows    = #lego.layout<"OrderBy(Row(T/R, R))">                            // step, row -> row of the tile
#A       = #lego.layout<"OrderBy(Row(N, N)).TileBy([N/T, N/T], [T, T])">   // the input in memory
#B       = #lego.layout<"OrderBy(Row(N, N)).TileBy([N/T, N/T], [T, T])">   // the output in memory
#tile    = #lego.layout<"OrderBy(GenP([T, T], swizzle))">                  // the tile in shared memory

module attributes {lego.reference = "transpose", lego.sizes = {N = 1024, T = 32, R = 8}} {
  func.func @transpose(%a: memref<1024x1024xf32> {lego.layout = #A},
                       %b: memref<1024x1024xf32> {lego.layout = #B}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %grid = "lego.size"() {layout = #blocks} : () -> index
    %block = "lego.size"() {layout = #threads} : () -> index
    %steps = "lego.dim"() {layout = #rows, dim = 0} : () -> index

    gpu.launch blocks(%bid, %by0, %bz0) in (%gx = %grid, %gy = %c1, %gz = %c1)
               threads(%tid, %ty0, %tz0) in (%bx = %block, %by = %c1, %bz = %c1) {
      %tile = "lego.alloc"() {layout = #tile} : () -> memref<?xf32, #gpu.address_space<workgroup>>
      %m, %n = "lego.inv"(%bid) {layout = #blocks} : (index) -> (index, index)
      %row, %col = "lego.inv"(%tid) {layout = #threads} : (index) -> (index, index)

      scf.for %step = %c0 to %steps step %c1 {
        %i = "lego.apply"(%step, %row) {layout = #rows} : (index, index) -> index
        %v = "lego.load"(%a, %m, %n, %i, %col) {layout = #A}
            : (memref<1024x1024xf32>, index, index, index, index) -> f32
        "lego.store"(%v, %tile, %i, %col) {layout = #tile}
            : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> ()
      }
      gpu.barrier
      scf.for %step = %c0 to %steps step %c1 {
        %i = "lego.apply"(%step, %row) {layout = #rows} : (index, index) -> index
        %v = "lego.load"(%tile, %col, %i) {layout = #tile}
            : (memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> f32
        "lego.store"(%v, %b, %n, %m, %i, %col) {layout = #B}
            : (f32, memref<1024x1024xf32>, index, index, index, index) -> ()
      }
      gpu.terminator
    }
    return
  }
}
