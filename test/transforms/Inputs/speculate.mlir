module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.guard_updates"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.speculate"(%loops) {speculated = 8 : i64} : (!transform.any_op) -> ()
    transform.yield
  }
}
