module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.persistent"(%kernels) {ctas = 2 : i64} : (!transform.any_op) -> ()
    "transform_lego.pipeline_stores"(%kernels) {store_stages = 1 : i64} : (!transform.any_op) -> ()
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.overlap_stores"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }
}
