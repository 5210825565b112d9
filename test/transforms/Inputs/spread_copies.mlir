// A GEMM whose copies stand among its mmas.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %accesses = transform.structured.match ops{["lego.load", "lego.store"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.stage_in_shared"(%accesses) {buffers = 3 : i64} : (!transform.any_op) -> ()
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.pipeline_copies"(%loops) {depth = 2 : i64} : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.distribute_copies"(%kernels) : (!transform.any_op) -> ()
    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_mma"(%contractions) {prefetch = 1 : i64} : (!transform.any_op) -> ()
    %rotated = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.prefetch_fragments"(%rotated) : (!transform.any_op) -> ()
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
