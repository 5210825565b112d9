// Roles for warps, with promoted accumulators.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %promote = "transform_lego.parameter"() {name = "promote", default = 3 : i64}
        : () -> !transform.param<i64>
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.specialize_warps"(%kernels, %promote) {stages = 2 : i64}
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
