module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.pipeline_loop"(%loops) {stages = 2 : i64} : (!transform.any_op) -> ()
    %depth = "transform_lego.parameter"() {name = "depth", default = 32 : i64}
        : () -> !transform.param<i64>
    "transform_lego.slice_dots"(%loops, %depth)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
