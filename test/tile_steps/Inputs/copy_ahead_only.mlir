module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.copy_ahead"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }
}
