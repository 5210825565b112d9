// The CTAs of a cluster, each with a slice of K; and all that follows.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %split_k = "transform_lego.parameter"() {name = "split_k", default = 2 : i64}
        : () -> !transform.param<i64>
    %over = "transform_lego.parameter"() {name = "over_ring", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.split_k"(%kernels, %split_k, %over)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    "transform_lego.specialize_warps"(%kernels) {stages = 3 : i64} : (!transform.any_op) -> ()
    "transform_lego.copies_to_tma"(%kernels) : (!transform.any_op) -> ()
    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_wgmma"(%contractions) : (!transform.any_op) -> ()
    %packed = "transform_lego.pack_shared"(%kernels) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
