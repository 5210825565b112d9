module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %stages = "transform_lego.parameter"() {name = "stages", default = 3 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_loop"(%loops, %stages)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.choose_copy_engines"(%kernels) {tensor_copies = 0 : i64}
        : (!transform.any_op) -> ()
    %iterations = "transform_lego.parameter"() {name = "iterations", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.copy_ahead"(%loops, %iterations)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
