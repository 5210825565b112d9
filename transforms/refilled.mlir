// Rows, or other tiles, that a loop reduces pass through shared memory; cp.async copies them ahead,
// each as soon as the stage that it takes has been read.
//
//   pipeline_loop         the loads of loops pass through rings of up to `stages` stages
//   choose_copy_engines   cp.async copies what it can
//   read_again            behind reductions tiles are read again, instead of waiting in registers
//   refill_stages         a stage is filled again behind the last read of it
//
// To change the parameters: `--param stages=2`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // The most stages of each ring, and the most bytes of all; 0 for any number.
    %stages = "transform_lego.parameter"() {name = "stages", default = 3 : i64}
        : () -> !transform.param<i64>
    %shared_bytes = "transform_lego.parameter"() {name = "shared_bytes", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_loop"(%loops, %stages, %shared_bytes) {every_load = 1 : i64}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    "transform_lego.choose_copy_engines"(%kernels) {tensor_copies = 0 : i64}
        : (!transform.any_op) -> ()
    // 1 extends what was loaded before a loop in each iteration.
    %extend_late = "transform_lego.parameter"() {name = "extend_late", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.read_again"(%loops, %extend_late)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.refill_stages"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }
}
