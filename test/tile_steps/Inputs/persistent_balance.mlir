module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.persistent"(%kernels)
        {ctas = 4 : i64, balance = 1 : i64, order = #lego.layout<"OrderBy(GenP([2, 3], reverse))">}
        : (!transform.any_op) -> ()
    transform.yield
  }
}
