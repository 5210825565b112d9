// A pipeline for kernels on tiles: a producer warpgroup copies the operands of dots into ring buffers.
//
//   pipeline_loop         the operands of the dots of loops pass through rings of `stages` stages
//   choose_copy_engines   TMA copies what it can
//   split_roles           warps of their own fill the rings
//   overlap_dots          dots by wgmma run while other work goes on
//
// To change the parameters: `--param stages=3`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
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
    "transform_lego.overlap_dots"(%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
