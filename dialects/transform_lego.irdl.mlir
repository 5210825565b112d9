// The steps of our own that a schedule is made of: transform operations on tiles and layouts.
//
// A schedule's named sequence @__transform_tiles gets the module while tiles are still read and
// written through layouts; these operations are for that. What each does stands in its Python
// module, lego_mlir/mlir/transforms/NAME.py, with the IR before and after.
//
// IRDL names have no dots, so the namespace is transform_lego. Stock mlir-opt loads this file, too:
//   mlir-opt --irdl-file=transform_lego.irdl.mlir

irdl.dialect @transform_lego {
  // The value of a parameter of the schedule: what the command line says, else the
  // default.  {name = "stages", default = 4 : i64}
  irdl.operation @parameter {
    %param = irdl.is !transform.param<i64>
    %name = irdl.base "#builtin.string"
    %default = irdl.base "#builtin.integer"
    irdl.results(value: %param)
    irdl.attributes {"name" = %name, "default" = %default}
  }

  // Keeps the text of the payload as it is now; `legoc --keep=DIR` puts one after every step.
  irdl.operation @keep {
    %op = irdl.is !transform.any_op
    %name = irdl.base "#builtin.string"
    irdl.operands(target: %op)
    irdl.attributes {"name" = %name}
  }

  // Tiles whose load or store says `shared = #layout` pass through shared memory, those of a loop
  // through `buffers` slots in turn.  {buffers = 4 : i64}, or a parameter of that name
  irdl.operation @stage_in_shared {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(accesses: %op, parameters: variadic %param)
  }

  // The fragments for the first products of a loop's body, loaded at the end of the turn before.
  irdl.operation @prefetch_fragments {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // The asynchronous copies of a loop's body, a part of them before the products of each step; for
  // @__transform_main.
  irdl.operation @spread_copies {
    %op = irdl.is !transform.any_op
    irdl.operands(loops: %op)
  }

  // The shared memory of a kernel as one dynamic buffer, in which what is not needed at the same
  // time has the same place. The launch is made anew: go on with the result.
  // {least_shared = 120000 : i64} for so many bytes at least, or a parameter of that name
  irdl.operation @pack_shared {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
    irdl.results(packed: %op)
  }

  // The copies into shared memory of a loop, `depth` iterations ahead of what uses them; there are
  // more buffers than that.  {depth = 3 : i64}, or a parameter of that name
  irdl.operation @pipeline_copies {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(loops: %op, parameters: variadic %param)
  }

  // The copies of tiles in a kernel, loads that are only stored, to the threads of the block.
  irdl.operation @distribute_copies {
    %op = irdl.is !transform.any_op
    irdl.operands(kernels: %op)
  }

  // At most `blocks` blocks, each of which takes one tile after another.
  irdl.operation @persist {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Clusters of `parts` blocks share a tile of the result, each a part of the loop over k; of the
  // sums each block then keeps a slice of the columns.  {parts = 2 : i64}, or a parameter of that
  // name
  irdl.operation @split_k {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // The kernel's loads of tiles to a warpgroup of their own, with a ring of `stages` slots between it
  // and the others; `cluster` blocks fetch the tiles that they have in common together, and after
  // `promote` steps sums of the tensor cores are added to others.
  irdl.operation @specialize_warps {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(kernels: %op, parameters: variadic %param)
  }

  // Products of tiles in shared memory to tensor cores, and what is computed from them to the
  // threads that hold it.  {m = 16 : i64, n = 8 : i64, k = 16 : i64, prefetch = 1 : i64}, each of
  // which may be left out or be a parameter of that name
  irdl.operation @contract_to_mma {
    %op = irdl.is !transform.any_op
    %param = irdl.is !transform.param<i64>
    irdl.operands(contractions: %op, parameters: variadic %param)
  }

  // Copies of tiles from global to shared memory by the tensor memory accelerator.
  irdl.operation @copies_to_tma {
    %op = irdl.is !transform.any_op
    irdl.operands(kernels: %op)
  }

  // Contractions of tiles in shared memory by warpgroups, and all that is done with their sums.
  irdl.operation @contract_to_wgmma {
    %op = irdl.is !transform.any_op
    irdl.operands(contracts: %op)
  }
}
