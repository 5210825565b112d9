// Staged and distributed: no copy is ahead of its use.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %accesses = transform.structured.match ops{["lego.load", "lego.store"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.stage_in_shared"(%accesses) : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.distribute_copies"(%kernels) : (!transform.any_op) -> ()
    transform.yield
  }
}
