// The transform operations on tiles and layouts from which a schedule is composed.
//
// The first ones belong into a schedule's named sequence @__transform_tiles, which runs on the module
// while memory is still read and written through layouts, or @__transform_main, which runs after that.
// Their implementations are in the Python modules lego_mlir/mlir/transforms/NAME.py, with the IR before
// and after. A number such as `depth` is an attribute, {depth = 3 : i64}, or an operand that is a
// parameter of that name.
//
// IRDL names have no dots, so the namespace is transform_lego. Upstream mlir-opt loads this file too:
//   mlir-opt --irdl-file=transform_lego.irdl.mlir

irdl.dialect @transform_lego {
  // Returns the value of a parameter of the schedule: the one of `--param NAME=VALUE`, else the
  // default.  {name = "stages", default = 4 : i64}
  irdl.operation @parameter {
    %param = irdl.is !transform.param<i64>
    %name = irdl.base "#builtin.string"
    %default = irdl.base "#builtin.integer"
    irdl.results(value: %param)
    irdl.attributes {"name" = %name, "default" = %default}
  }

  // Records the text of the payload; `legoc --keep=DIR` inserts one after every step.
  irdl.operation @keep {
    %op = irdl.is !transform.any_op
    %name = irdl.base "#builtin.string"
    irdl.operands(target: %op)
    irdl.attributes {"name" = %name}
  }

  // Loads the fragments for the first mmas of a loop's body at the end of the previous iteration.
  irdl.operation @prefetch_fragments {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Interleaves the asynchronous copies of a loop's body with its groups of mmas; for
  // @__transform_main.
  irdl.operation @spread_copies {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Unrolls loops that are known to run at most `unroll` times; for the end of @__transform_main.
  irdl.operation @unroll_short {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Lets exponentials of loops begin before the votes that may change them: those of `speculated`
  // registers.
  irdl.operation @speculate {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // The steps below are for a schedule's named sequence @__transform_placed, which runs on kernels on
  // tiles when all tiles have layouts. Their implementations are in lego_mlir/mlir/tile_steps.

  // Lets at most `ctas` CTAs run the programs of a grid in a loop, in the order of the layout `order`
  // of the grid, or `raster_group` rows of it at a time. With `balance = 1` programs are dealt by how
  // often their loops run.
  irdl.operation @persistent {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Lets the tiles that the dots of loops multiply pass through ring buffers of `stages` stages, or of
  // `outer_stages` in a loop around others; with `every_load = 1` all that threads have elements of
  // their own of. If `shared_bytes` do not hold so many stages, those of the last tiles have fewer.
  irdl.operation @pipeline_loop {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Lets TMA make the copies into rings that it can make, and cp.async others that it can make. With
  // `tensor_copies = 0` TMA makes none. TMA brings `l2_promotion` bytes into the L2 cache at least:
  // 64, 128 or 256; 0 for 128.
  irdl.operation @choose_copy_engines {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Lets all threads start the copies of loops into rings so many `iterations` before the tiles are
  // used; by default as many as the stages of each ring allow. With `if_any = 1` there may be none.
  irdl.operation @copy_ahead {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Lets loops load neighbouring pieces of rows as one tile, so that they pass through one ring.
  irdl.operation @join_loads {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Lets all threads fill each stage of the rings of loops again behind its release, and wait for each
  // tile where it is read first.
  irdl.operation @refill_stages {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Computes what follows from tiles in shared memory by arithmetic again behind reductions in
  // loops, so that it needs no registers meanwhile. With `extend_late = 1` tiles of bf16 that are
  // loaded before a loop are extended in each iteration, so that they need half the registers.
  irdl.operation @read_again {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Divides the dots of loops along k into dots of `depth`, whose operands come from shared memory
  // piece by piece.
  irdl.operation @slice_dots {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Lets the copies by TMA that all CTAs of a cluster make be made once, by multicast.
  irdl.operation @multicast {
    %op = irdl.is !transform.any_op
    irdl.operands(kernels: %op)
  }

  // Lets the tiles that kernels store, and that TMA can store, pass through ring buffers of
  // `store_stages` stages, each tile in `store_parts` parts.
  irdl.operation @pipeline_stores {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Lets tiles of rings that are converted to other layouts in shared memory go to rings of `stages`
  // stages there, if `converter_warps` warps can copy them by matrices; not with 0 warps.
  irdl.operation @pipeline_converts {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Lets CTAs take at least `min_shared_bytes` of shared memory, so that fewer are side by side.
  irdl.operation @reserve_shared {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Lets the tiles that loops put into rings be put one iteration late, part by part beside its dots;
  // not if `overlap_epilogue` is 0.
  irdl.operation @overlap_stores {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Lets the dots of loops, which only add to what the loops carry in f32, begin at zero every
  // `promote` iterations; threads add up these sums. 0 changes nothing.
  irdl.operation @promote {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Divides the loop of dots of kernels on tiles into `split_k` slices, each of a program of its own
  // along z. The last one to arrive has the sum of all: it adds up slices in order, or, if `in_order`
  // is 0, each adds its own to what is there. 1 changes nothing.
  irdl.operation @split_k_loop {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Gives what fills the rings of kernels to a role of `producer_warps` further warps, of which
  // `converter_warps` put tiles of rings into other rings.
  // `producer_registers` and `consumer_registers` are operands of setmaxnreg, or 0.
  irdl.operation @split_roles {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Keeps operand A of dots by wgmma in registers that is the same in all iterations of loops, if it takes
  // at most `operand_registers` registers of a thread.
  irdl.operation @keep_operands {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // Lets warps leave out the updates of loops that change nothing for them, by votes.
  irdl.operation @guard_updates {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Lets the last dot of loops with several come one iteration late, with what depends on it.
  irdl.operation @skew {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Makes the dots of kernels that are by wgmma asynchronous: they are waited for where their results
  // are used, and operands from rings are released behind that.
  irdl.operation @overlap_dots {
    %op = irdl.is !transform.any_op
    irdl.operands(kernels: %op)
  }

  // Lets dots by wgmma that only add to what loops carry run on in the next iteration.
  irdl.operation @overlap_iterations {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // Lets two warpgroups compute the tiles of persistent kernels in turns, if `ping_pong` is 1.
  irdl.operation @ping_pong {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Lets the warpgroups of a role begin the dots of loops in turns; not with `turns = 0`.
  irdl.operation @order_consumers {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }
}
