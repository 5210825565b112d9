module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.pipeline_loop"(%loops) {stages = 2 : i64} : (!transform.any_op) -> ()
    "transform_lego.choose_copy_engines"(%kernels) : (!transform.any_op) -> ()
    %warps = "transform_lego.parameter"() {name = "converter_warps", default = 2 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_converts"(%kernels, %warps) {stages = 3 : i64}
        : (!transform.any_op, !transform.param<i64>) -> ()
    %roles = "transform_lego.parameter"() {name = "producer_warps", default = 4 : i64}
        : () -> !transform.param<i64>
    "transform_lego.split_roles"(%kernels, %roles, %warps)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    "transform_lego.overlap_dots"(%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
