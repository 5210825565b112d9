// The step alone, without the rings of whose tiles it loads fragments ahead.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    transform.yield
  }

  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.prefetch_fragments"(%loops) : (!transform.any_op) -> ()
    transform.yield
  }
}
