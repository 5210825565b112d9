module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %stages = "transform_lego.parameter"() {name = "store_stages", default = 2 : i64}
        : () -> !transform.param<i64>
    "transform_lego.persistent"(%kernels) {ctas = 2 : i64} : (!transform.any_op) -> ()
    %parts = "transform_lego.parameter"() {name = "store_parts", default = 1 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_stores"(%kernels, %stages, %parts)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    transform.yield
  }
}
