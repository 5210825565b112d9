"""The passes over tile IR, in order: from tiles without layouts to each thread's registers.

    merge_scalars       equal indices and other scalars are computed once
    fill_invalid        reductions, scans and dots ignore invalid elements: by selects
    simplify_tiles      dead, repeated and invariant operations go
    hoist_broadcasts    what is the same along a dimension is computed once
    order_contractions  dots sum in the order that leaves operand A where it is
    assign_layouts      every tile gets a distributed layout, and conversions where they differ
    lower_pipelines     rings become mbarriers and copies; in the end roles become branches
    lower_tiles         tiles become the registers of each thread, and accesses of memory
    plan_shared_memory  the buffers of conversions share one allocation
    insert_barriers     where one thread reads what another one wrote

One pass is one file, or a folder of that name. What they know of operations is in `mlir.tile_ir`.
"""
