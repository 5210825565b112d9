// Attention on Hopper: two dots in a loop, by wgmma, in the order of FlashAttention-3.
//
//   persistent            CTAs run programs one after another
//   pipeline_loop         the operands of the dots of loops pass through rings of `stages` stages
//   choose_copy_engines   TMA copies what it can
//   pipeline_stores       TMA stores tiles, from rings of `store_stages` stages
//   pipeline_converts     values of 8 bits are transposed from ring to ring
//   split_roles           warps of their own fill the rings, store, and transpose
//   keep_operands         queries stay in registers
//   guard_updates         warps whose scores have not grown do not rescale
//   skew                  the second dot of the loop comes one iteration late
//   overlap_dots          dots run while other work goes on
//   order_consumers       warpgroups begin their dots in turns
//   speculate             exponentials begin before it is known whether scores have grown
//
// To change the parameters: `--param stages=3`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %own = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    // CTAs that run programs one after another; 0 for a CTA for each program.
    %ctas = "transform_lego.parameter"() {name = "ctas", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.persistent"(%kernels, %ctas) {balance = 1 : i64}
        : (!transform.any_op, !transform.param<i64>) -> ()
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Stages of each ring.
    %stages = "transform_lego.parameter"() {name = "stages", default = 2 : i64}
        : () -> !transform.param<i64>
    // Those of the rings of persistent CTAs' queries.
    %outer_stages = "transform_lego.parameter"() {name = "outer_stages", default = 2 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_loop"(%loops, %stages, %outer_stages)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    "transform_lego.choose_copy_engines"(%kernels) : (!transform.any_op) -> ()

    // Stages of the tiles that wait to be stored by TMA; 0 if the threads that hold them store them.
    %store_stages = "transform_lego.parameter"() {name = "store_stages", default = 0 : i64}
        : () -> !transform.param<i64>
    // Parts of a tile that are stored one after another.
    %store_parts = "transform_lego.parameter"() {name = "store_parts", default = 1 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_stores"(%kernels, %store_stages, %store_parts)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Warps that transpose values of 8 bits on their way to the second dot; 0 if those do that which
    // multiply.
    %converter_warps = "transform_lego.parameter"() {name = "converter_warps", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_converts"(%kernels, %converter_warps, %stages)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Warps that fill the rings, store, and transpose.
    %producer_warps = "transform_lego.parameter"() {name = "producer_warps", default = 4 : i64}
        : () -> !transform.param<i64>
    // Registers of a thread after setmaxnreg; 0 for no setmaxnreg.
    %producer_registers = "transform_lego.parameter"()
        {name = "producer_registers", default = 0 : i64} : () -> !transform.param<i64>
    %consumer_registers = "transform_lego.parameter"()
        {name = "consumer_registers", default = 0 : i64} : () -> !transform.param<i64>
    "transform_lego.split_roles"(%kernels, %producer_warps, %producer_registers, %consumer_registers,
                                 %converter_warps)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
           !transform.param<i64>) -> ()

    %rest = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    // Registers of a thread that an operand of all iterations may take; 0 to leave it in shared memory.
    %operand_registers = "transform_lego.parameter"()
        {name = "operand_registers", default = 0 : i64} : () -> !transform.param<i64>
    "transform_lego.keep_operands"(%rest, %operand_registers)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.guard_updates"(%own) : (!transform.any_op) -> ()
    "transform_lego.skew"(%own) : (!transform.any_op) -> ()
    "transform_lego.overlap_dots"(%kernels) : (!transform.any_op) -> ()
    %skewed = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    // 1 if warpgroups begin their dots in turns; 0 if each begins when it can.
    %turns = "transform_lego.parameter"() {name = "turns", default = 1 : i64}
        : () -> !transform.param<i64>
    "transform_lego.order_consumers"(%skewed, %turns)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }

  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    // Registers of exponentials that begin before it is known whether scores have grown.
    %speculated = "transform_lego.parameter"() {name = "speculated", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.speculate"(%loops, %speculated)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
