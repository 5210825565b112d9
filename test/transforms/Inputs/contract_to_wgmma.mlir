// The step contract_to_wgmma, and memory that begins where it needs it.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_wgmma"(%contractions) : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %packed = "transform_lego.pack_shared"(%kernels) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
