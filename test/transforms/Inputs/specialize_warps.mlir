// Roles for warps.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %stages = "transform_lego.parameter"() {name = "stages", default = 3 : i64}
        : () -> !transform.param<i64>
    %pdl = "transform_lego.parameter"() {name = "pdl", default = 0 : i64}
        : () -> !transform.param<i64>
    %consumer = "transform_lego.parameter"() {name = "consumer_registers", default = 0 : i64}
        : () -> !transform.param<i64>
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.specialize_warps"(%kernels, %stages, %pdl, %consumer)
        {producer_registers = 24 : i64}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
        -> ()
    transform.yield
  }
}
