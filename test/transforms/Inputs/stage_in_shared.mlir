// Only the staging, through as many buffers as the parameter says.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %accesses = transform.structured.match ops{["lego.load", "lego.store"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %buffers = "transform_lego.parameter"() {name = "buffers", default = 2 : i64}
        : () -> !transform.param<i64>
    "transform_lego.stage_in_shared"(%accesses, %buffers)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
