// unroll_short on all loops.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %unroll = "transform_lego.parameter"() {name = "unroll", default = 4 : i64}
        : () -> !transform.param<i64>
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.unroll_short"(%loops, %unroll)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
