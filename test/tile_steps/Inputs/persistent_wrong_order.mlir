module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.persistent"(%kernels)
        {ctas = 2 : i64, order = #lego.layout<"OrderBy(Row(3, 2))">}
        : (!transform.any_op) -> ()
    transform.yield
  }
}
