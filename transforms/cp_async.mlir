// Dots by mma.sync, from sm_80 on: all warps copy their operands into ring buffers by cp.async.
//
//   pipeline_loop         the operands of the dots of loops pass through rings of `stages` stages
//   choose_copy_engines   cp.async copies what it can
//   slice_dots            dots load their operands piece by piece
//   copy_ahead            tiles are copied stages - 1 iterations before they are used
//   prefetch_fragments    a tile's first piece is loaded between the mma of the tile before it
//   spread_copies         copies are placed between the mma
//   unroll_short          loops of at most `unroll` iterations are unrolled
//
// To change the parameters: `--param stages=3`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Stages of each ring.
    %stages = "transform_lego.parameter"() {name = "stages", default = 4 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_loop"(%loops, %stages)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.choose_copy_engines"(%kernels) {tensor_copies = 0 : i64}
        : (!transform.any_op) -> ()
    // Elements along k of a piece; 0 for those of one instruction.
    %depth = "transform_lego.parameter"() {name = "depth", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.slice_dots"(%loops, %depth)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.copy_ahead"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }

  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.prefetch_fragments"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }

  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.spread_copies"(%loops) : (!transform.any_op) -> ()
    // Loops of at most so many iterations are unrolled.
    %unroll = "transform_lego.parameter"() {name = "unroll", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.unroll_short"(%loops, %unroll)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
