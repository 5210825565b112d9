// Rows, or other tiles, that a loop reduces pass through shared memory; cp.async copies them ahead.
//
//   join_loads            neighbouring pieces of rows are one tile
//   pipeline_loop         the loads of loops pass through rings of `stages` stages
//   choose_copy_engines   cp.async copies what it can
//   copy_ahead            tiles are copied stages - 1 iterations before they are used
//   read_again            behind reductions tiles are read again, instead of waiting in registers
//
// To change the parameters: `--param stages=4`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Stages of each ring.
    %stages = "transform_lego.parameter"() {name = "stages", default = 3 : i64}
        : () -> !transform.param<i64>
    "transform_lego.join_loads"(%loops) : (!transform.any_op) -> ()
    "transform_lego.pipeline_loop"(%loops, %stages) {every_load = 1 : i64}
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.choose_copy_engines"(%kernels) {tensor_copies = 0 : i64}
        : (!transform.any_op) -> ()
    "transform_lego.copy_ahead"(%loops) {if_any = 1 : i64} : (!transform.any_op) -> ()
    // 1 extends what was loaded before a loop in each iteration.
    %extend_late = "transform_lego.parameter"() {name = "extend_late", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.read_again"(%loops, %extend_late)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
