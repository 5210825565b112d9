// Products of tiles on tensor cores by `mma.sync`, from sm_80 on.
//
// The payload says what a block computes: it reads tiles, multiplies them in a loop, and writes a
// tile (docs/examples/matmul.mlir). What it reads and writes says by `shared` where a tile lies in
// shared memory, the product by `lego.warps` how warps divide it. The steps:
//
//   stage_in_shared    tiles go through shared memory, in which there are `buffers` of each
//   pipeline_copies    they are fetched `depth` turns of the loop ahead: at most buffers - 1
//   distribute_copies  every thread copies its part, 16 bytes at a time, past the registers
//   contract_to_mma    every warp loads its part by ldmatrix and multiplies it by mma.sync
//   prefetch_fragments the first fragments of a tile are loaded among the products of the one before
//   pack_shared        what is not needed at the same time shares its memory
//   spread_copies      copies stand among the products, behind the fragments for the next of them
//
// `--param buffers=3 --param depth=2` gives other numbers, `--keep DIR` shows each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
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

    %products = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.prefetch_fragments"(%products) : (!transform.any_op) -> ()

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
