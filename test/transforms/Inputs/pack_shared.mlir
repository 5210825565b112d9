// One step: the shared memory of every kernel as one buffer.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %packed = "transform_lego.pack_shared"(%kernels) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
