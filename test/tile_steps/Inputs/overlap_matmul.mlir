module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.pipeline_loop"(%loops) {stages = 3 : i64} : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.choose_copy_engines"(%kernels) : (!transform.any_op) -> ()
    "transform_lego.split_roles"(%kernels) {producer_registers = 40 : i64, consumer_registers = 232 : i64} : (!transform.any_op) -> ()
    "transform_lego.overlap_dots"(%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
