// The step contract_to_mma alone.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %prefetch = "transform_lego.parameter"() {name = "prefetch", default = 0 : i64}
        : () -> !transform.param<i64>
    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_mma"(%contractions, %prefetch)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
