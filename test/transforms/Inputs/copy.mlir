// Tiles by copies of single threads: staged, pipelined, distributed, packed.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %buffers = "transform_lego.parameter"() {name = "buffers", default = 4 : i64}
        : () -> !transform.param<i64>
    %depth = "transform_lego.parameter"() {name = "depth", default = 3 : i64}
        : () -> !transform.param<i64>
    %accesses = transform.structured.match ops{["lego.load", "lego.store"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.stage_in_shared"(%accesses, %buffers)
        : (!transform.any_op, !transform.param<i64>) -> ()
    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.pipeline_copies"(%loops, %depth)
        : (!transform.any_op, !transform.param<i64>) -> ()
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.distribute_copies"(%kernels) : (!transform.any_op) -> ()
    %packed = "transform_lego.pack_shared"(%kernels) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
