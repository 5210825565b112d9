// GEMM on tensor cores by `mma.sync`, from sm_80 on.
//
// The payload computes a CTA tile: it loads tiles of A and B, multiplies them in the K loop, and
// stores a tile of C (docs/examples/matmul.mlir). The attribute `shared` of a load or store is the
// tile's shared-memory layout; `lego.warps` of the contraction is the layout of warps on the tile.
// The transform steps:
//
//   choose_layouts     derives these layouts, and the threads of a CTA, where the payload has none
//   stage_in_shared    tiles go through shared memory, which holds `buffers` stages of each
//   pipeline_copies    copies are issued `depth` iterations ahead, at most buffers - 1
//   distribute_copies  every thread copies chunks of 16 bytes by cp.async
//   contract_to_mma    every warp loads fragments by ldmatrix and multiplies them by mma.sync
//   prefetch_fragments a tile's first fragments are loaded between the mma of the tile before it
//   pack_shared        buffers that are not live at the same time share memory
//   spread_copies      copies are placed between the mma, after the fragment loads for the next one
//
// To change the parameters: `--param buffers=3 --param depth=2`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    // Rows and columns of warps on the tile of C.
    %down = "transform_lego.parameter"() {name = "warps_down", default = 2 : i64}
        : () -> !transform.param<i64>
    %across = "transform_lego.parameter"() {name = "warps_across", default = 2 : i64}
        : () -> !transform.param<i64>
    %contracts = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.choose_layouts"(%contracts, %down, %across)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    %buffers = "transform_lego.parameter"() {name = "buffers", default = 4 : i64}
        : () -> !transform.param<i64>
    %accesses = transform.structured.match ops{["lego.load", "lego.store"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.stage_in_shared"(%accesses, %buffers)
        : (!transform.any_op, !transform.param<i64>) -> ()

    %depth = "transform_lego.parameter"() {name = "depth", default = 3 : i64}
        : () -> !transform.param<i64>
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.pipeline_copies"(%loops, %depth)
        : (!transform.any_op, !transform.param<i64>) -> ()

    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.distribute_copies"(%kernels) : (!transform.any_op) -> ()

    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_mma"(%contractions) {prefetch = 1 : i64}
        : (!transform.any_op) -> ()

    %main_loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.prefetch_fragments"(%main_loops) : (!transform.any_op) -> ()

    %packed = "transform_lego.pack_shared"(%kernels) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }

  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.spread_copies"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }
}
