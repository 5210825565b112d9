// Products of tiles on Hopper: tiles come by TMA, warpgroups multiply them by `wgmma`.
//
// The payload is the one that transforms/hmma.mlir takes. Here its layouts say more: `shared` of a
// factor's tile gives the swizzling mode of its copies and of the instruction's operands, `shared`
// of the result is the layout of one chunk of 64 rows, `lego.warps` puts warpgroups one below the
// other, and the layout that numbers the blocks makes neighbours in a cluster share a tile. The
// steps:
//
//   split_k            `parts` blocks of a cluster share a tile of the result
//   persist            at most `blocks` blocks stay and take one tile of the result after another
//   specialize_warps   a warpgroup fetches tiles into a ring of `stages` slots, the others multiply
//   copies_to_tma      what it fetches, the tensor memory accelerator copies
//   contract_to_wgmma  warpgroups multiply, and store their part of the result by TMA
//   pack_shared        all shared memory as one buffer
//
// `--param stages=6 --param cluster=2` gives other numbers, `--keep DIR` shows each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Blocks that share a tile of the result, each a part of k. There is one for each tile then.
    %parts = "transform_lego.parameter"() {name = "split_k", default = 1 : i64}
        : () -> !transform.param<i64>
    // 1: their sums go where the tiles of A or B were, and leave room for more stages.
    %over = "transform_lego.parameter"() {name = "over_ring", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.split_k"(%kernels, %parts, %over)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // One block for each multiprocessor of an H200. More than there are tiles: a tile for each.
    %blocks = "transform_lego.parameter"() {name = "persistent_ctas", default = 132 : i64}
        : () -> !transform.param<i64>
    "transform_lego.persist"(%kernels, %blocks)
        : (!transform.any_op, !transform.param<i64>) -> ()

    // Slots of the ring: what is on its way while a tile is multiplied.
    %stages = "transform_lego.parameter"() {name = "stages", default = 4 : i64}
        : () -> !transform.param<i64>
    // Blocks that fetch the tiles they have in common together.
    %cluster = "transform_lego.parameter"() {name = "cluster", default = 1 : i64}
        : () -> !transform.param<i64>
    // Registers of a thread after they are dealt out anew; 0 leaves them as they are.
    %producer = "transform_lego.parameter"() {name = "producer_registers", default = 40 : i64}
        : () -> !transform.param<i64>
    %consumer = "transform_lego.parameter"() {name = "consumer_registers", default = 232 : i64}
        : () -> !transform.param<i64>
    // 1: begins before the work in front of it on the stream is done, and waits for its results.
    %dependent = "transform_lego.parameter"() {name = "pdl", default = 1 : i64}
        : () -> !transform.param<i64>
    // 1: a tile of the result is stored while the next one is multiplied.
    %deferred = "transform_lego.parameter"() {name = "overlap_epilogue", default = 0 : i64}
        : () -> !transform.param<i64>
    // Steps over k that tensor cores add up before threads do, in f32; 0: all. For 8-bit floats, of
    // whose sums the tensor cores keep few bits.
    %promote = "transform_lego.parameter"() {name = "promote", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.specialize_warps"(
        %kernels, %stages, %cluster, %producer, %consumer, %dependent, %deferred, %promote)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
           !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
           !transform.param<i64>) -> ()

    "transform_lego.copies_to_tma"(%kernels) : (!transform.any_op) -> ()

    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_wgmma"(%contractions) : (!transform.any_op) -> ()

    // Bytes of a block's shared memory at least: above half of a multiprocessor's, no two blocks
    // share one, not even blocks of two launches.
    %least = "transform_lego.parameter"() {name = "min_shared_bytes", default = 0 : i64}
        : () -> !transform.param<i64>
    %packed = "transform_lego.pack_shared"(%kernels, %least)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield
  }
}
