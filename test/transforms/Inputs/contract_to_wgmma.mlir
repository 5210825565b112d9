// The step contract_to_wgmma alone.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %products = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_wgmma"(%products) : (!transform.any_op) -> ()
    transform.yield
  }
}
