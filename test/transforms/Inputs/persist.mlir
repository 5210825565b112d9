// The step persist alone.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %persistent_ctas = "transform_lego.parameter"() {name = "persistent_ctas", default = 4 : i64}
        : () -> !transform.param<i64>
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.persist"(%kernels, %persistent_ctas)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
