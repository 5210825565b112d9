// Attention by persistent CTAs: rings run on from one row of tiles to the next, which may have more
// or fewer keys.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %inner = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %ctas = "transform_lego.parameter"() {name = "ctas", default = 132 : i64}
        : () -> !transform.param<i64>
    "transform_lego.persistent"(%kernels, %ctas)
        : (!transform.any_op, !transform.param<i64>) -> ()
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Stages of each ring.
    %stages = "transform_lego.parameter"() {name = "stages", default = 2 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_loop"(%loops, %stages)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.choose_copy_engines"(%kernels) : (!transform.any_op) -> ()

    // Warps that fill the rings.
    %producer_warps = "transform_lego.parameter"() {name = "producer_warps", default = 4 : i64}
        : () -> !transform.param<i64>
    // Registers of a thread after setmaxnreg; 0 for no setmaxnreg.
    %producer_registers = "transform_lego.parameter"()
        {name = "producer_registers", default = 0 : i64} : () -> !transform.param<i64>
    %consumer_registers = "transform_lego.parameter"()
        {name = "consumer_registers", default = 0 : i64} : () -> !transform.param<i64>
    "transform_lego.split_roles"(%kernels, %producer_warps, %producer_registers, %consumer_registers)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
        -> ()

    "transform_lego.skew"(%inner) : (!transform.any_op) -> ()
    "transform_lego.overlap_dots"(%kernels) : (!transform.any_op) -> ()
    %skewed = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.order_consumers"(%skewed) : (!transform.any_op) -> ()
    transform.yield
  }
}
