// Warp-specialized GEMM on Hopper: tiles are copied by TMA and multiplied by `wgmma`.
//
// The payload computes a CTA tile: it loads tiles of A and B, multiplies them in the K loop, and
// stores a tile of C (test/transforms/Inputs/matmul.mlir). Its layouts decide more. `shared` of an
// operand's tile gives the swizzling mode of its TMA copies and matrix descriptors. `shared` of C is
// the layout of an epilogue tile of 64 rows. `lego.warps` puts warpgroups one below the other. A CTA
// computes one tile of C, or a cluster of CTAs does; for persistent CTAs there is persistent.mlir, of
// kernels on tiles. The transform steps:
//
//   choose_layouts     derives these layouts where the payload has none
//   split_k            the `split_k` CTAs of a cluster compute slices of k of one tile of C
//   specialize_warps   a producer warpgroup fills a ring buffer of `stages`, consumers multiply
//   copies_to_tma      the producer's copies become TMA copies
//   contract_to_wgmma  consumers multiply by wgmma and store their rows of C by TMA
//   pack_shared        all shared memory becomes one buffer
//
// To change the parameters: `--param stages=6 --param cluster=2`. `--keep DIR` keeps each step.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {
    %kernels = transform.structured.match ops{["gpu.launch"]} in %module
        : (!transform.any_op) -> !transform.any_op

    // Consumer warpgroups, one below the other on the tile of C.
    %warpgroups = "transform_lego.parameter"() {name = "warpgroups", default = 2 : i64}
        : () -> !transform.param<i64>
    %contracts = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.choose_layouts"(%contracts, %warpgroups)
        : (!transform.any_op, !transform.param<i64>) -> ()

    // Slices of k. With more than one, every CTA computes one slice of one tile of C.
    %split_k = "transform_lego.parameter"() {name = "split_k", default = 1 : i64}
        : () -> !transform.param<i64>
    // 1: their accumulators reuse the ring buffer's memory, so that more stages fit.
    %over_ring = "transform_lego.parameter"() {name = "over_ring", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.split_k"(%kernels, %split_k, %over_ring)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()

    // Stages of the ring buffer.
    %stages = "transform_lego.parameter"() {name = "stages", default = 4 : i64}
        : () -> !transform.param<i64>
    // Registers of a thread after setmaxnreg; 0 for no setmaxnreg.
    %producer = "transform_lego.parameter"() {name = "producer_registers", default = 40 : i64}
        : () -> !transform.param<i64>
    %consumer = "transform_lego.parameter"() {name = "consumer_registers", default = 232 : i64}
        : () -> !transform.param<i64>
    // 1: programmatic dependent launch: starts before the launch ahead of it on the stream ends.
    %pdl = "transform_lego.parameter"() {name = "pdl", default = 1 : i64}
        : () -> !transform.param<i64>
    // Iterations after which accumulators are promoted to f32; 0 for none. For 8-bit floats, whose
    // products tensor cores accumulate in few bits.
    %promote = "transform_lego.parameter"() {name = "promote", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.specialize_warps"(
        %kernels, %stages, %producer, %consumer, %pdl, %promote)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
           !transform.param<i64>, !transform.param<i64>) -> ()

    // Bytes that a TMA load brings into the L2 cache at least: 64, 128 or 256. 0: 128 if rows of the
    // tensor begin inside of a 128-byte line, else 256.
    %l2_promotion = "transform_lego.parameter"() {name = "l2_promotion", default = 0 : i64}
        : () -> !transform.param<i64>
    "transform_lego.copies_to_tma"(%kernels, %l2_promotion)
        : (!transform.any_op, !transform.param<i64>) -> ()

    %contractions = transform.structured.match ops{["vector.contract"]} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.contract_to_wgmma"(%contractions) : (!transform.any_op) -> ()

    // Least shared memory of a CTA, in bytes. Above half of a multiprocessor's, a multiprocessor
    // holds one CTA at a time, also of two launches.
    %min_shared_bytes = "transform_lego.parameter"() {name = "min_shared_bytes", default = 0 : i64}
        : () -> !transform.param<i64>
    %packed = "transform_lego.pack_shared"(%kernels, %min_shared_bytes)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield
  }
}
