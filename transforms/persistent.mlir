// Dots that accumulate, by persistent CTAs: a GEMM, whose loads of a tile run while another is stored.
//
//   split_k_loop          several programs share the K loop of a tile
//   persistent            at most `ctas` CTAs run the programs of the grid one after another
//   promote               sums of a few iterations are added in f32, outside of the tensor cores
//   pipeline_loop         the operands of the dots of loops pass through rings of `stages` stages
//   choose_copy_engines   TMA copies what it can
//   multicast             CTAs of a cluster load what they have in common together
//   pipeline_stores       TMA stores tiles, from rings of `store_stages` stages
//   split_roles           warps of their own fill the rings, and store
//   overlap_iterations    dots run on in the next iteration
//   overlap_stores        parts of a tile are put into rings while the next one is multiplied
//   ping_pong             two warpgroups compute whole tiles in turns
//   reserve_shared        CTAs take so much shared memory that few lie side by side
//
// To change the parameters: `--param stages=4`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_placed(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Programs that share the iterations of the loop of dots of a tile, and the last of which stores it.
    %split_k = "transform_lego.parameter"() {name = "split_k", default = 1 : i64}
        : () -> !transform.param<i64>
    // Whether they are added in the order of slices, which gives the same bits each time.
    %in_order = "transform_lego.parameter"() {name = "in_order", default = 1 : i64}
        : () -> !transform.param<i64>
    "transform_lego.split_k_loop"(%kernels, %split_k, %in_order)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // One CTA for each multiprocessor of an H200. If it exceeds the programs, one CTA for each.
    %ctas = "transform_lego.parameter"() {name = "ctas", default = 132 : i64}
        : () -> !transform.param<i64>
    // Rows of the grid that are run column by column, so that CTAs share operands in the L2 cache.
    %raster_group = "transform_lego.parameter"() {name = "raster_group", default = 8 : i64}
        : () -> !transform.param<i64>
    // CTAs of a cluster, which run neighbours and load what these have in common by multicast.
    %cluster = "transform_lego.parameter"() {name = "cluster", default = 1 : i64}
        : () -> !transform.param<i64>
    // Rows of the grid that a cluster has, by the columns that remain; 0 for one column.
    %cluster_rows = "transform_lego.parameter"() {name = "cluster_rows", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.persistent"(%kernels, %ctas, %raster_group, %cluster, %cluster_rows)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
           !transform.param<i64>) -> ()

    // Iterations of which tensor cores add up the products before threads add them in f32; 0 for all.
    %promote = "transform_lego.parameter"() {name = "promote", default = 0 : i64}
        : () -> !transform.param<i64>
    %sums = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.promote"(%sums, %promote)
        : (!transform.any_op, !transform.param<i64>) -> ()

    %loops = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Stages of each ring.
    %stages = "transform_lego.parameter"() {name = "stages", default = 3 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_loop"(%loops, %stages)
        : (!transform.any_op, !transform.param<i64>) -> ()
    // Bytes that a TMA load brings into the L2 cache at least: 64, 128 or 256; 0 for 128.
    %l2_promotion = "transform_lego.parameter"() {name = "l2_promotion", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.choose_copy_engines"(%kernels, %l2_promotion)
        : (!transform.any_op, !transform.param<i64>) -> ()
    "transform_lego.multicast"(%kernels) : (!transform.any_op) -> ()

    // Stages of the tiles that wait to be stored by TMA; 0 if the threads that hold them store them.
    %store_stages = "transform_lego.parameter"() {name = "store_stages", default = 0 : i64}
        : () -> !transform.param<i64>
    // Parts of a tile that are stored one after another.
    %store_parts = "transform_lego.parameter"() {name = "store_parts", default = 1 : i64}
        : () -> !transform.param<i64>
    "transform_lego.pipeline_stores"(%kernels, %store_stages, %store_parts)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Warps that fill the rings.
    %producer_warps = "transform_lego.parameter"() {name = "producer_warps", default = 4 : i64}
        : () -> !transform.param<i64>
    // Registers of a thread after setmaxnreg; 0 for no setmaxnreg.
    %producer_registers = "transform_lego.parameter"()
        {name = "producer_registers", default = 0 : i64} : () -> !transform.param<i64>
    %consumer_registers = "transform_lego.parameter"()
        {name = "consumer_registers", default = 0 : i64} : () -> !transform.param<i64>
    "transform_lego.split_roles"(%kernels, %producer_warps, %producer_registers, %consumer_registers)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
        -> ()

    %rest = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.overlap_iterations"(%rest) : (!transform.any_op) -> ()

    %tiles = transform.structured.match ops{["scf.for"]} in %module
        : (!transform.any_op) -> !transform.any_op
    // 1: a tile is put into its ring during the main loop of the next one.
    %overlap_epilogue = "transform_lego.parameter"() {name = "overlap_epilogue", default = 1 : i64}
        : () -> !transform.param<i64>
    "transform_lego.overlap_stores"(%tiles, %overlap_epilogue)
        : (!transform.any_op, !transform.param<i64>) -> ()

    // 1: two warpgroups compute whole tiles in turns: one multiplies while the other one stores.
    %ping_pong = "transform_lego.parameter"() {name = "ping_pong", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.ping_pong"(%kernels, %ping_pong)
        : (!transform.any_op, !transform.param<i64>) -> ()

    // Least shared memory of a CTA, in bytes. Above half of a multiprocessor's, a multiprocessor
    // holds one CTA at a time, also of two launches.
    %min_shared_bytes = "transform_lego.parameter"() {name = "min_shared_bytes", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.reserve_shared"(%kernels, %min_shared_bytes)
        : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
