// The lego dialect: layouts in MLIR.
//
// A layout is one attribute, its text in the paper's dot notation:
//
//   #A = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])">
//
// Names in it that the module's `lego.sizes` dictionary does not give a value are symbols. Where
// operations below take "symbols", they take one index operand for each, in the order in which the
// text first names them.
//
// This file is the dialect: legoc loads it, and so does stock mlir-opt, by
//   mlir-opt --irdl-file=lego.irdl.mlir
// Types of other dialects stand here as types, by `irdl.is`: reading one makes its dialect known,
// which a name in quotes, by `irdl.base`, does not.

irdl.dialect @lego {
  // A bijection between a logical index space and the flat offsets 0 .. size-1.
  irdl.attribute @layout {
    %notation = irdl.base "#builtin.string"
    irdl.parameters(notation: %notation)
  }

  // The flat offset of a logical index.  operands: one index a dimension, symbols
  irdl.operation @apply {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(operands: variadic %index)
    irdl.results(offset: %index)
    irdl.attributes {"layout" = %layout}
  }

  // The logical index at a flat offset, one result a dimension.  operands: offset, symbols
  irdl.operation @inv {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(offset: %index, symbols: variadic %index)
    irdl.results(indices: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // The number of elements of a layout.  operands: symbols
  irdl.operation @size {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(symbols: variadic %index)
    irdl.results(size: %index)
    irdl.attributes {"layout" = %layout}
  }

  // The size of one dimension of a layout's logical index space.  operands: symbols
  irdl.operation @dim {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    %dim = irdl.base "#builtin.integer"
    irdl.operands(symbols: variadic %index)
    irdl.results(size: %index)
    irdl.attributes {"layout" = %layout, "dim" = %dim}
  }

  // Whether there is an element at a logical index: not where partial tiles pad the tensor up.
  // operands: one index a dimension, symbols
  irdl.operation @mask {
    %index = irdl.is index
    %i1 = irdl.is i1
    %layout = irdl.base @lego::@layout
    irdl.operands(operands: variadic %index)
    irdl.results(exists: %i1)
    irdl.attributes {"layout" = %layout}
  }

  // A buffer that holds a layout's elements, of type memref<?xT, space>. Inside a gpu.launch with the
  // workgroup address space it is shared memory. `lego.alignment = 1024 : i64` aligns it to so many
  // bytes; only dynamic shared memory, which a schedule's pack_shared makes, can be aligned so.
  irdl.operation @alloc {
    %memref = irdl.base "!builtin.memref"
    %layout = irdl.base @lego::@layout
    irdl.results(buffer: %memref)
    irdl.attributes {"layout" = %layout}
  }

  // The element at a logical index.  operands: one index a dimension, symbols
  //
  // With `slice = array<i64: ...>`, which lists the dimensions that are whole, the value is a
  // vector of their sizes, and only the other dimensions have an index. What partial tiles pad
  // reads as 0, or as the attribute `other`, of the element's type.
  //
  // `shared`, a layout of those sizes, is the vector's shared-memory layout if a schedule moves it
  // there.
  irdl.operation @load {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %element = irdl.any
    %layout = irdl.base @lego::@layout
    irdl.operands(buffer: %memref, operands: variadic %index)
    irdl.results(value: %element)
    irdl.attributes {"layout" = %layout}
  }

  // Stores an element at a logical index.  operands: one index a dimension, symbols
  //
  // With `slice` it stores a vector, as above. Where partial tiles pad, nothing is written. With the
  // unit attribute `within`, which only schedules lower, two more operands bound the rows of the
  // tensor that are written: the first inclusive, the second exclusive.
  //
  // The unit attribute `by_threads` makes the threads of a CTA store a tile that has `shared`, and not
  // TMA, which takes only tensors whose rows begin at multiples of 16 bytes.
  //
  // The unit attribute `exclusive` promises that no two threads update the same element.
  irdl.operation @store {
    %element = irdl.any
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(value: %element, buffer: %memref, operands: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // Updates the element at a logical index atomically among all threads that do so, and returns the
  // value before: `kind` is "add", "max", "min", "and", "or", "xor" or "exchange". Updates are
  // not ordered with other accesses. Where partial tiles pad, nothing is updated, and the value is
  // 0.  operands: one index a dimension, symbols
  irdl.operation @atomic {
    %element = irdl.any
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    %kind = irdl.base "#builtin.string"
    irdl.operands(value: %element, buffer: %memref, operands: variadic %index)
    irdl.results(old: %element)
    irdl.attributes {"layout" = %layout, "kind" = %kind}
  }

  // The number at a position of a table.  operands: the position, in [0, length)
  irdl.operation @table {
    %index = irdl.is index
    %values = irdl.any
    irdl.operands(position: %index)
    irdl.results(value: %index)
    irdl.attributes {"values" = %values}
  }

  // One of several buffers of the same element type in device memory, as a buffer of one dimension.
  // operands: its number, in [0, count); the buffers
  irdl.operation @pick {
    %index = irdl.is index
    %memref = irdl.base "!builtin.memref"
    irdl.operands(number: %index, buffers: variadic %memref)
    irdl.results(buffer: %memref)
  }

  // Adds up a tile over the CTAs of a cluster. Each CTA keeps one slice of the columns, that of its
  // rank. A schedule makes it; a later step lowers it to writes into the other CTAs' shared memory.
  // The layout maps (slice, column of the slice) to the tile's column.
  irdl.operation @reduce_scatter {
    %accumulator = irdl.base "!builtin.vector"
    %index = irdl.is index
    %own = irdl.base "!builtin.vector"
    %layout = irdl.base @lego::@layout
    irdl.operands(accumulator: %accumulator, rank: %index)
    irdl.results(own: %own)
    irdl.attributes {"layout" = %layout}
  }

  // Adds up a tile over the CTAs that compute slices of K, through accumulators in global memory.
  // What follows in the block happens in the CTA that is the last to add, for each tile of the
  // output. Both buffers hold zeros before and after: the accumulators, one tile after another, and
  // the number of CTAs that have added to each tile. `slices` is their number. With `in_order` each
  // CTA has accumulators of its own, `slices` times as many, which are added in the order of slices.
  irdl.operation @sum_slices {
    %accumulator = irdl.base "!builtin.vector"
    %index = irdl.is index
    %sums = irdl.base "!builtin.memref"
    %arrivals = irdl.base "!builtin.memref"
    %total = irdl.base "!builtin.vector"
    %slices = irdl.base "#builtin.integer"
    irdl.operands(accumulator: %accumulator, tile: %index, slice: %index, sums: %sums,
                  arrivals: %arrivals)
    irdl.results(total: %total)
    irdl.attributes {"slices" = %slices}
  }

  // Fails the compilation unless the layout is proven to have a property, which is a unit
  // attribute: {layout = #L, bijective}. It computes nothing.  operands: symbols
  irdl.operation @check {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(symbols: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // The tensor map by which TMA copies tiles of a tensor. The kernel takes it instead of the tensor's
  // address. A schedule derives it from the tensor's layout and a tile's shared-memory layout; the
  // launch encodes it.
  // Dimensions go from the innermost outwards; shape and box are in elements, strides, of all but
  // the innermost, swizzle, and l2_promotion, what a read brings into the L2 cache at least, in bytes.
  irdl.operation @tensor_map {
    %memref = irdl.base "!builtin.memref"
    %pointer = irdl.is !llvm.ptr
    %layout = irdl.base @lego::@layout
    %shape = irdl.any
    %strides = irdl.any
    %box = irdl.any
    %swizzle = irdl.base "#builtin.integer"
    %promotion = irdl.base "#builtin.integer"
    irdl.operands(tensor: %memref)
    irdl.results(map: %pointer)
    irdl.attributes {"layout" = %layout, "shape" = %shape, "strides" = %strides, "box" = %box,
                     "swizzle" = %swizzle, "l2_promotion" = %promotion}
  }

  // Several consecutive tensor maps as one kernel parameter: 128 bytes each.
  irdl.operation @tensor_maps {
    %pointer = irdl.is !llvm.ptr
    irdl.operands(maps: variadic %pointer)
    irdl.results(first: %pointer)
  }
}
