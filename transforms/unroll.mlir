// Unroll the loops of every kernel by four, inner loops first, and clean up.
//
// A schedule is a module of transform operations. Its @__transform_main is applied to the payload
// module. `legoc FILE.mlir --schedule=unroll --emit=scheduled` prints the result of this one.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch", "gpu.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %kernels : !transform.any_op {
    ^bb0(%kernel: !transform.any_op):
      %loops = transform.structured.match ops{["scf.for"]} in %kernel
          : (!transform.any_op) -> !transform.any_op
      transform.loop.unroll %loops {factor = 4} : !transform.any_op
    }
    transform.apply_patterns to %module {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %module : !transform.any_op
    transform.yield
  }
}
