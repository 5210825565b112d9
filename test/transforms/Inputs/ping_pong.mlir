// Consumers that compute tiles in turns: all parameters are the user's.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %ctas = "transform_lego.parameter"() {name = "persistent_ctas", default = 1 : i64}
        : () -> !transform.param<i64>
    %overlap = "transform_lego.parameter"() {name = "overlap_epilogue", default = 0 : i64}
        : () -> !transform.param<i64>
    %ping_pong = "transform_lego.parameter"() {name = "ping_pong", default = 1 : i64}
        : () -> !transform.param<i64>
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.persist"(%kernels, %ctas) : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.specialize_warps"(%kernels, %overlap, %ping_pong) {stages = 3 : i64}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
