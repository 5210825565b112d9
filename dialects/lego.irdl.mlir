// The lego dialect: layouts in MLIR.
//
// A layout is one attribute, its text in the paper's dot notation:
//
//   #A = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])">
//
// Names in it that the module's `lego.sizes` dictionary does not give a value are symbols. Where
// operations below say "symbols", one index operand follows for each, in the order in which the
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

  // A buffer with room for a layout, of type memref<?xT, space>. Inside a gpu.launch with the
  // workgroup address space it is shared memory. With `lego.alignment = 1024 : i64` it begins at a
  // multiple of so many bytes, where a schedule's pack_shared makes shared memory dynamic.
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
  // `shared`, a layout of those sizes, says where the vector lies in shared memory if a schedule
  // takes it there.
  irdl.operation @load {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %element = irdl.any
    %layout = irdl.base @lego::@layout
    irdl.operands(buffer: %memref, operands: variadic %index)
    irdl.results(value: %element)
    irdl.attributes {"layout" = %layout}
  }

  // Puts an element at a logical index.  operands: one index a dimension, symbols
  //
  // With `slice` a vector, as above. Where partial tiles pad, nothing is written. With the unit
  // attribute `within`, which a schedule sees to, two more operands bound the rows of the tensor
  // that are written of the tile, from the one to the other, exclusive.
  irdl.operation @store {
    %element = irdl.any
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(value: %element, buffer: %memref, operands: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // The number at a place of a table.  operands: the place, from 0 on, inside of the table
  irdl.operation @table {
    %index = irdl.is index
    %values = irdl.any
    irdl.operands(place: %index)
    irdl.results(value: %index)
    irdl.attributes {"values" = %values}
  }

  // One of several buffers of the same element type, in device memory, as one of one dimension.
  // operands: which, from 0 on; the buffers
  irdl.operation @pick {
    %index = irdl.is index
    %memref = irdl.base "!builtin.memref"
    irdl.operands(number: %index, buffers: variadic %memref)
    irdl.results(buffer: %memref)
  }

  // The sums of a tile over the blocks of a cluster, of which each block keeps one slice of the
  // columns: the one of its rank. A schedule makes it, and a later step the writes into the other
  // blocks' shared memory. The layout goes from (slice, column of the slice) to the tile's column.
  irdl.operation @reduce_scatter {
    %sums = irdl.base "!builtin.vector"
    %index = irdl.is index
    %own = irdl.base "!builtin.vector"
    %layout = irdl.base @lego::@layout
    irdl.operands(sums: %sums, rank: %index)
    irdl.results(own: %own)
    irdl.attributes {"layout" = %layout}
  }

  // Fails the compilation if the layout is not known to have a property, which is a unit
  // attribute: {layout = #L, bijective}. It leaves nothing behind.  operands: symbols
  irdl.operation @check {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(symbols: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // How TMA copies tiles of a tensor: what a kernel gets instead of the tensor's address. A schedule
  // makes it of the tensor's layout and that of a tile in shared memory; `launch` encodes it.
  // Dimensions go from the innermost outwards; shape and box are in elements, strides, of all but
  // the innermost, and swizzle in bytes.
  irdl.operation @tensor_map {
    %memref = irdl.base "!builtin.memref"
    %pointer = irdl.is !llvm.ptr
    %layout = irdl.base @lego::@layout
    %shape = irdl.any
    %strides = irdl.any
    %box = irdl.any
    %swizzle = irdl.base "#builtin.integer"
    irdl.operands(tensor: %memref)
    irdl.results(map: %pointer)
    irdl.attributes {"layout" = %layout, "shape" = %shape, "strides" = %strides, "box" = %box,
                     "swizzle" = %swizzle}
  }

  // Several tensor maps one behind the other, as one parameter of a kernel: 128 bytes each.
  irdl.operation @tensor_maps {
    %pointer = irdl.is !llvm.ptr
    irdl.operands(maps: variadic %pointer)
    irdl.results(first: %pointer)
  }
}
